//! The entry of one open span that a reader of the ring finds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sys::map::{Map, Part};
use crate::sys::memory::collect_or_empty;
use crate::text::site::Site;
use sa_format::ring as layout;

/// An entry of a stack or of the lane table in the mapped ring.
#[derive(Clone, Copy)]
pub(crate) struct OpenEntry(Part<{ layout::OPEN_ENTRY_BYTES }>);

/// The site or the name of an open span.
#[derive(Clone, Copy)]
pub(crate) enum EntryName<'a> {
    Site(&'static Site),
    Text(&'a str),
}

/// Offset and maximum length of the name in an entry of a stack.
pub(crate) const STACK_NAME: (usize, usize) = (layout::STACK_NAME_AT, layout::STACK_NAME_BYTES);
/// Offset and maximum length of the name in an entry of the lane table or of a chain.
pub(crate) const LANE_NAME: (usize, usize) = (layout::LANE_NAME_AT, layout::LANE_NAME_BYTES);

impl OpenEntry {
    /// Returns the entry of an open span at byte `at` of `map`.
    #[inline(always)]
    pub(crate) fn new(map: Map, at: usize) -> OpenEntry {
        OpenEntry(Part::new(map, at))
    }

    #[inline(always)]
    fn map(self) -> Map {
        self.0.map()
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> &'static AtomicU64 {
        self.map().u64_at(layout::OPEN_START_AT)
    }

    #[inline(always)]
    pub(crate) fn site(&self) -> &'static AtomicU32 {
        self.map().u32_at(layout::OPEN_SITE_AT)
    }

    /// Returns the word in the entry that locates the span's text: the result of
    /// [`pack_span_text`](layout::pack_span_text).
    #[inline(always)]
    pub(crate) fn text(&self) -> &'static AtomicU64 {
        self.map().u64_at(layout::OPEN_TEXT_AT)
    }

    /// Returns the field with the lane of the parent span plus 1, or with 0 if there is no parent.
    /// Only in entries of the lane table.
    pub(crate) fn parent(&self) -> &'static AtomicU32 {
        self.map().u32_at(layout::LANE_PARENT_AT)
    }

    /// Stores in the entry which line ends the span: the one that ends at `position` of slot
    /// `slot`. The span is closed once that line is published.
    pub(crate) fn close_with(&self, slot: u32, position: u64) {
        let closing_slot = self.map().u32_at(layout::LANE_CLOSING_SLOT_AT);
        closing_slot.store(slot, Ordering::Relaxed);
        self.closes_at().store(position, Ordering::Release);
    }

    /// Returns true if the line that ends the span is published. `head` is the position after the
    /// last published line of that line's slot.
    pub(crate) fn is_closed_at(&self, head: u64) -> bool {
        (1..=head).contains(&self.closes_at().load(Ordering::Acquire))
    }

    fn name_len(&self) -> &'static AtomicU32 {
        self.map().u32_at(layout::OPEN_NAME_LEN_AT)
    }

    fn closes_at(&self) -> &'static AtomicU64 {
        self.map().u64_at(layout::LANE_CLOSES_AT)
    }

    /// Fills the entry of a span that begins. `site` is the span's number in the ring's site table,
    /// or 0, and `parent` is the lane of the span that contains it. Only for an entry of the lane
    /// table or of a chain. Its start must be 0 until then.
    pub(crate) fn open(&self, site: u32, parent: Option<u32>, start_ns: u64) {
        self.closes_at().store(0, Ordering::Relaxed);
        let parent = parent.map_or(0, |lane| lane + 1);
        self.parent().store(parent, Ordering::Relaxed);
        self.site().store(site, Ordering::Relaxed);
        self.start().store(start_ns, Ordering::Release);
    }

    /// Stores the name of a span without a site in the entry: at offset `at`, cut to `room` bytes.
    #[cold]
    pub(crate) fn set_name(&self, name: &str, (at, room): (usize, usize)) {
        let cut = &name.as_bytes()[..name.floor_char_boundary(room)];
        self.map().copy_in(at, cut);
        let len = u32::try_from(cut.len()).unwrap_or(0);
        self.name_len().store(len, Ordering::Relaxed);
    }

    /// Returns the name that [`OpenEntry::set_name`] stored in the entry. `at` is its offset and
    /// `room` its maximum length in bytes.
    pub(crate) fn name(&self, (at, room): (usize, usize)) -> String {
        let len = self.name_len().load(Ordering::Relaxed) as usize;
        let bytes = (0..len.min(room)).map(|offset| self.map().byte(at + offset));
        String::from_utf8(collect_or_empty(bytes)).unwrap_or_default() // only valid text was stored
    }
}
