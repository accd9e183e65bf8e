//! One thread's part of the ring: the lines it publishes, its open spans, and the turn to flush.
//!
//! Only the owner of a slot (the thread that has it) moves `head`. Only the thread that has the
//! turn moves `flushed`. Readers in other processes see both (FORMAT.md §3).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::ring::chain::Chain;
use crate::ring::open_entry::OpenEntry;
use crate::ring::pending::Pending;
use crate::ring::text_area::TextArea;
use crate::sys::map::Map;
use crate::sys::page_bytes;
use sa_format::ring as layout;

/// Name of the thread that has a slot, or had it last.
#[derive(Debug, Default)]
pub(crate) struct ThreadName {
    pub(crate) tid: u32,
    pub(crate) name: String,
}

/// A slot of this process's ring. It lives as long as the process.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    /// True if the slot is in the ring file. Then the merge finds its unflushed lines after a kill,
    /// or after an exit with a full disk.
    pub(crate) in_file: bool,
    /// Size of the ring in bytes, a power of two.
    pub(crate) bytes: u64,
    /// Key that the slot's states are checked with.
    pub(crate) key: u64,
    /// Text area and control part.
    front: Map,
    control: Map,
    ring: Map,
    /// Names and args of the spans on the slot's stack, one after the other.
    pub(crate) text: TextArea,
    /// Entries of the spans that are deeper than the stack.
    pub(crate) deeper: Chain,
    turn: AtomicBool,
    /// Dropped lines of this slot that are not reported yet.
    pub(crate) pending: Mutex<Pending>,
    /// Name of the thread that has the slot, or had it last.
    pub(crate) thread_name: Mutex<ThreadName>,
    /// Position after which every line is an event; `u64::MAX` while another kind of line is being
    /// published.
    pub(crate) named_until: AtomicU64,
}

/// Size in bytes of a chunk of entries beyond the stack: 63 with their texts.
const DEEPER_BYTES: usize = 20 << 10;

/// The only generation that a version 1 writer uses. Positions keep increasing over the life of a
/// slot.
pub(crate) const GENERATION: u32 = 0;

impl Slot {
    /// Creates the slot (the ring area of one thread) with this index. `front` contains its text
    /// area and then its control part, and `ring` is the memory for its lines, `bytes` long.
    pub(crate) fn new(
        index: u32,
        in_file: bool,
        bytes: u64,
        (front, ring): (Map, Map),
        pending: Pending,
    ) -> Slot {
        let control_at = layout::SLOT_TEXT_BYTES.next_multiple_of(page_bytes());
        let control = front.part(control_at, front.len() - control_at);
        let key = layout::key(index, GENERATION);
        let generation = control.u32_at(layout::SLOT_GENERATION_AT);
        generation.store(GENERATION, Ordering::Relaxed);
        let state = control.u64_at(layout::SLOT_STATE_AT);
        state.store(layout::state(0, 0, key), Ordering::Relaxed);
        Slot {
            index,
            in_file,
            bytes,
            key,
            front,
            control,
            ring,
            text: TextArea::new(front.part(0, layout::SLOT_TEXT_BYTES)),
            deeper: Chain::new(
                control,
                layout::SLOT_DEEPER_AT,
                index,
                DEEPER_BYTES.next_multiple_of(page_bytes()),
                layout::DEEP_TEXT_BYTES,
            ),
            turn: AtomicBool::new(false),
            pending: Mutex::new(pending),
            thread_name: Mutex::default(),
            named_until: AtomicU64::new(0),
        }
    }

    /// Unmaps the slot's memory and its part of the ring file. Nothing may use the slot any more.
    pub(crate) fn unmap(self) {
        self.deeper.unmap();
        self.front.unmap();
        self.ring.unmap();
    }

    /// Returns the slot's state word: the position after the last published line, the number of
    /// open spans and a check byte, as packed by [`layout::state`].
    #[inline(always)]
    pub(crate) fn state(&self) -> &'static AtomicU64 {
        self.control.u64_at(layout::SLOT_STATE_AT)
    }

    /// Returns the word with the position up to which the slot is flushed. Every line below it is
    /// in the fragment or reported as lost.
    #[inline(always)]
    pub(crate) fn flushed(&self) -> &'static AtomicU64 {
        self.control.u64_at(layout::SLOT_FLUSHED_AT)
    }

    /// Returns the word that marks a span which ends with the slot's next line although later spans
    /// are open. Its value is made by [`layout::ending`], or 0 if there is no such span.
    pub(crate) fn ending(&self) -> &'static AtomicU64 {
        self.control.u64_at(layout::SLOT_ENDING_AT)
    }

    /// Returns the position after the last published line.
    pub(crate) fn head(&self) -> u64 {
        self.state().load(Ordering::Acquire) >> 16
    }

    /// Returns the number of spans that are open on the slot's thread. The value 255 stands for 255
    /// or more.
    pub(crate) fn depth(&self) -> usize {
        usize::try_from(self.state().load(Ordering::Acquire) >> 8 & 0xff).unwrap_or(0)
    }

    /// Returns true if every published line is flushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.head() == self.flushed().load(Ordering::Acquire)
    }

    /// Returns the field with the tid of the thread that has the slot; it is 0 if no thread has it.
    pub(crate) fn tid(&self) -> &'static AtomicU32 {
        self.control.u32_at(layout::SLOT_TID_AT)
    }

    /// Returns the address of the byte at position `at`. The `bytes` bytes from there on are
    /// contiguous.
    #[inline(always)]
    pub(crate) fn address(&self, at: u64) -> *mut u8 {
        let offset = usize::try_from(at & (self.bytes - 1)).unwrap_or(0);
        self.ring.at(offset)
    }

    /// Returns the published lines between two positions of the slot.
    ///
    /// # Safety
    ///
    /// The caller has the turn (so `from..to` stays above `flushed`), and `to` is at most `head`.
    pub(crate) unsafe fn published(&self, from: u64, to: u64) -> &'static [u8] {
        let len = usize::try_from(to - from).unwrap_or(0);
        // SAFETY: within the doubled mapping, and nothing writes to positions between `flushed` and
        // `head`.
        unsafe { std::slice::from_raw_parts(self.address(from), len) }
    }

    /// Takes the turn, which is the right to flush the slot. Returns `None` if another thread has
    /// it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let was_taken = self.turn.swap(true, Ordering::Acquire);
        (!was_taken).then(|| Turn(self)) // not `then_some`: dropping an unused turn would end that of the other thread
    }

    /// Returns the ring entry of the open span at `depth`, which is 0 for the outermost span.
    /// Returns `None` if the depth is beyond the stack, which has a fixed size.
    #[inline(always)]
    pub(crate) fn stack_entry(&self, depth: usize) -> Option<OpenEntry> {
        let at = layout::SLOT_STACK_AT + depth * layout::OPEN_ENTRY_BYTES;
        (depth < layout::STACK_DEPTH).then(|| OpenEntry::new(self.control, at))
    }

    /// Returns the ring entry of the open span at `depth`, on the stack or in the chain that
    /// continues it. Returns `None` if the chain has no entry for that depth.
    #[inline(always)]
    pub(crate) fn open_entry(&self, depth: usize) -> Option<OpenEntry> {
        match self.stack_entry(depth) {
            None => self.deep_entry(depth),
            entry => entry,
        }
    }

    #[cold]
    #[inline(never)]
    fn deep_entry(&self, depth: usize) -> Option<OpenEntry> {
        self.deeper.entry(depth.checked_sub(layout::STACK_DEPTH)?)
    }

    /// Returns the area of the ring that holds the text of a span at `depth`, or `None` if the
    /// chain has no area for that depth.
    #[inline(always)]
    pub(crate) fn text_area(&self, depth: usize) -> Option<TextArea> {
        match depth {
            0..layout::STACK_DEPTH => Some(self.text),
            _ => self.deep_text_area(depth),
        }
    }

    #[cold]
    #[inline(never)]
    fn deep_text_area(&self, depth: usize) -> Option<TextArea> {
        self.deeper.text(depth.checked_sub(layout::STACK_DEPTH)?)
    }

    /// Returns the number of entries, counted from the outermost span, that may belong to open
    /// spans.
    pub(crate) fn entries_in_use(&self) -> usize {
        match self.depth() {
            layout::MAX_DEPTH => layout::STACK_DEPTH + self.deeper.len(),
            depth => depth,
        }
    }

    /// Returns true if `entry`, which is the one at `depth`, belongs to a span that is still open.
    /// The depth must be below [`Slot::entries_in_use`].
    pub(crate) fn is_open(&self, depth: usize, entry: OpenEntry) -> bool {
        let (head, ending) = (self.head(), self.ending().load(Ordering::Acquire));
        let is_closed = match depth {
            layout::MAX_DEPTH.. => entry.is_closed_at(head),
            _ => layout::ended_depth(ending, head) == Some(depth),
        };
        entry.start().load(Ordering::Relaxed) != 0 && !is_closed
    }
}

/// The right to flush a slot, which moves its `flushed`. Dropping it gives other threads the right.
pub(crate) struct Turn<'a>(&'a Slot);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turn.store(false, Ordering::Release);
    }
}
