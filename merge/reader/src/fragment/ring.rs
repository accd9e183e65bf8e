//! The ring next to a fragment: the data that its process had not flushed yet, and the spans that were open (FORMAT.md §3).
//!
//! Nothing in a ring is trusted until it was checked: offsets, sizes, counts and texts may all be hostile. A ring is never written here.

mod lanes;
mod losses;
mod open;

use crate::fragment::assembly::StreamKey;
use crate::fragment::blocks::Positions;
pub use lanes::{OpenLane, shown_lanes};
use losses::LossTables;
pub(crate) use losses::ReportedLosses;
pub use open::OpenSpan;
use open::{Area, Chain, OpenEntry, Sites};
use sa_format::FragmentHeader;
use sa_format::loss::CountedLoss;
use sa_format::ring as layout;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

/// Maximum number of slots. A ring that claims more is rejected.
const MAX_SLOTS: u32 = 1 << 20;
/// Maximum number of lanes. A ring that claims more is rejected.
const MAX_LANES: u32 = 1 << 20;
/// Maximum size of one slot's ring. A larger one is rejected.
const MAX_RING_BYTES: u64 = 1 << 28;
/// Upper bound for the length of a record that a recorder writes about itself.
const MAX_OWN_RECORD_BYTES: usize = 4096;
/// Maximum number of times that a slot is read again because it keeps changing.
const TRIES: u32 = 64;

/// Bytes of a ring that may change while they are read.
pub trait RingBytes {
    /// Fills `buffer` from `offset`; `None` if the ring is too short.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()>;
    /// Returns the current length in bytes. A live ring may grow.
    fn len(&self) -> u64;
    /// Returns true if the ring has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl RingBytes for &[u8] {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        buffer.copy_from_slice(self.get(start..start.checked_add(buffer.len())?)?);
        Some(())
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }
}

/// Unflushed bytes and open spans of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Slot number.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
    /// Position of the first byte of `bytes`.
    pub from: u64,
    /// Position after the last complete line.
    pub head: u64,
    /// The lines from `from` to `head`.
    pub bytes: Vec<u8>,
    /// Spans open on its thread, outermost first.
    pub open: Vec<OpenSpan>,
    /// Offset and size of its ring bytes in the file.
    pub place: (u64, u64),
}

impl Slot {
    /// Returns the stream of its bytes.
    pub(crate) fn stream(&self) -> StreamKey {
        (self.slot, self.generation)
    }

    /// Returns the offset in the ring's file of the byte at `index` of `bytes`.
    pub fn file_offset(&self, index: u64) -> u64 {
        let (data, size) = self.place;
        data + (self.from + index) % size.max(1)
    }
}

/// A consistent copy of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Nonce of the recorder, the number that the hex digits in the header stand for.
    pub nonce: u64,
    /// Pid of the process.
    pub pid: u32,
    /// Slots that could be read.
    pub slots: Vec<Slot>,
    /// Spans open on virtual lanes.
    pub lanes: Vec<OpenLane>,
    /// Offsets of the slots that were invalid.
    pub bad_slots: Vec<u64>,
    /// Losses in its tables that no record had reported when slot 0 was at `losses_read_at`.
    pub losses: Vec<CountedLoss>,
    /// Position of slot 0 when the loss tables were read. Records after it may report these losses.
    pub(crate) losses_read_at: u64,
    /// Offsets of invalid texts of open spans.
    pub bad_texts: Vec<u64>,
}

impl Ring {
    /// Returns true if the recorder that wrote this header owns the ring.
    pub(crate) fn belongs_to(&self, header: &FragmentHeader) -> bool {
        u64::from_str_radix(&header.nonce, 16) == Ok(self.nonce) && self.pid == header.pid
    }
}

/// Copies a ring; `None` if the source is not a ring.
pub fn recover(source: &impl RingBytes) -> Option<Ring> {
    let head = RingHead::read(source)?;
    let mut reader = RingReader {
        source,
        sites: Sites::read(source, &head),
        claimed: ClaimedRanges::default(),
        tables: LossTables::read(source),
        head,
    };
    let RingHead { pid, nonce, .. } = reader.head;
    let mut ring = Ring {
        nonce,
        pid,
        losses: reader.tables.counts(source, &reader.head),
        losses_read_at: reader.tables.read_at,
        ..Ring::default()
    };
    let mut lost = Vec::new();
    // If slots overlap, only the first one is used.
    let mut first = reader.slot_place(0);
    // Slot 0 comes last. If a loss is reported while the slots are copied, its table entry is cleared, but the record is then in the copy of slot 0.
    let count = reader.head.directory_count;
    for slot in (1..count).chain(0..count.min(1)) {
        let entry = reader.head.entry(slot);
        // The slot is unused, or exists only in the writer's memory.
        if u64_at(source, entry) == Some(0) {
            let entry = reader.tables.entry(source, slot);
            lost.extend(entry.map(|entry| (slot, entry)));
            continue;
        }
        let place = match slot {
            0 => first.take(),
            _ => reader.slot_place(slot),
        };
        match place.and_then(|place| reader.slot(&place)) {
            Some((copy, entry)) => {
                lost.extend(entry.map(|entry| (slot, entry)));
                ring.slots.push(copy);
            }
            None => ring.bad_slots.push(entry),
        }
    }
    ring.slots.sort_by_key(|slot| slot.slot);
    let first = ring.slots.first().filter(|slot| slot.slot == 0);
    let first_head = first.map_or(0, |slot| slot.head);
    for (number, entry) in lost {
        let copy = ring.slots.iter().find(|slot| slot.slot == number);
        let loss = losses::slot_loss(&entry, number, copy, pid, first_head);
        ring.losses.extend(loss);
    }
    // Lanes are read after the slots: a span whose closing line is below some `head` then counts as closed.
    let link = layout::MORE_LANES_AT as u64;
    let text_bytes = usize::try_from(reader.head.texts.lane_bytes).unwrap_or(0);
    let more = reader.chain(link, layout::MORE_LANES_SEED, text_bytes);
    ring.lanes = reader.lanes(&more, &ring.slots);
    ring.bad_texts = reader.sites.bad_texts;
    Some(ring)
}

/// Returns the raw ring bytes of the process's own slot, including flushed ones. The beginning is repeated at the end, so that a record that wraps
/// around is contiguous, too.
pub(crate) fn own_records(source: &impl RingBytes) -> Option<Vec<u8>> {
    let head = RingHead::read(source)?;
    let (offset, size) = read_entry(source, 0, head.entry(0))?;
    let start = offset.checked_add(head.control_bytes)?;
    let fits = size <= MAX_RING_BYTES && start.checked_add(size)? <= source.len();
    let mut bytes = vec![0; usize::try_from(size).ok().filter(|_| fits)?];
    source.read(start, &mut bytes)?;
    let around = bytes.len().min(MAX_OWN_RECORD_BYTES);
    bytes.extend_from_within(..around);
    Some(bytes)
}

struct RingHead {
    nonce: u64,
    pid: u32,
    control_bytes: u64,
    sites: Range<u64>,
    lanes: u64,
    lane_count: u32,
    directory: u64,
    directory_count: u32,
    /// Location of the texts of open spans; empty in older rings.
    texts: layout::TextAreas,
}

impl RingHead {
    fn read(source: &dyn RingBytes) -> Option<RingHead> {
        let header: [u8; layout::HEADER_BYTES] = bytes_at(source, 0)?;
        let field = |at: usize| entry_u32(&header, at);
        if !header.starts_with(&layout::MAGIC)
            || field(layout::VERSION_AT) != 1
            || field(layout::SUM_AT) != layout::header_sum(&header)
        {
            return None;
        }
        let (page, lane_count) = (field(layout::PAGE_BYTES_AT), field(layout::LANES_COUNT_AT));
        let directory_count = field(layout::DIRECTORY_COUNT_AT);
        if directory_count > MAX_SLOTS || lane_count > MAX_LANES || page > 1 << 24 {
            return None;
        }
        let sites = u64::from(field(layout::SITES_OFFSET_AT));
        let texts = bytes_at(source, layout::TEXT_AREAS_AT as u64)
            .and_then(|fields| layout::TextAreas::from_fields(&fields));
        let head = RingHead {
            nonce: entry_u64(&header, layout::NONCE_AT),
            pid: field(layout::PID_AT),
            control_bytes: u64::from(page).max(layout::SLOT_CONTROL_BYTES as u64),
            sites: sites..sites + u64::from(field(layout::SITES_BYTES_AT)),
            lanes: field(layout::LANES_OFFSET_AT).into(),
            lane_count,
            directory: field(layout::DIRECTORY_OFFSET_AT).into(),
            directory_count,
            texts: texts.unwrap_or_default(),
        };
        (head.entry(directory_count) <= source.len()).then_some(head)
    }

    /// Returns the offset of a slot's directory entry.
    fn entry(&self, slot: u32) -> u64 {
        self.directory + u64::from(slot) * layout::DIRECTORY_ENTRY_BYTES as u64
    }
}

/// File ranges that slots already use. Slots of a valid ring do not overlap, so all copies together are no larger than the file.
#[derive(Default)]
struct ClaimedRanges(Positions);

impl ClaimedRanges {
    /// Claims a range; `None` if part of it is in use already.
    fn claim(&mut self, range: Range<u64>) -> Option<()> {
        let is_free = self.0.missing(range.clone()) == [range.clone()];
        is_free.then(|| drop(self.0.add(range)))
    }
}

fn bytes_at<const N: usize>(source: &dyn RingBytes, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    source.read(offset, &mut bytes)?;
    Some(bytes)
}

/// Reads bytes that their writer may be changing, until two reads return the same.
fn stable_bytes_at<const N: usize>(source: &dyn RingBytes, offset: u64) -> Option<[u8; N]> {
    let mut last = None;
    for _ in 0..TRIES {
        let bytes = bytes_at(source, offset)?;
        fence(Ordering::Acquire);
        if last == Some(bytes) {
            break;
        }
        last = Some(bytes);
    }
    last
}

fn u32_at(source: &dyn RingBytes, offset: u64) -> Option<u32> {
    bytes_at(source, offset).map(u32::from_ne_bytes)
}

fn u64_at(source: &dyn RingBytes, offset: u64) -> Option<u64> {
    stable_bytes_at(source, offset).map(u64::from_ne_bytes)
}

/// Returns offset and ring size of a slot; `None` if its directory entry does not match the checksum.
fn read_entry(source: &dyn RingBytes, slot: u32, entry: u64) -> Option<(u64, u64)> {
    let bytes: [u8; layout::DIRECTORY_ENTRY_BYTES] = bytes_at(source, entry)?;
    let (offset, size) = (
        entry_u64(&bytes, 0),
        entry_u32(&bytes, layout::ENTRY_SIZE_AT),
    );
    let sum = entry_u32(&bytes, layout::ENTRY_SUM_AT);
    (layout::entry_sum(slot, offset, size) == sum).then_some((offset, size.into()))
}

/// Location of a slot in the file.
struct SlotPlace {
    /// Entries of the spans that do not fit on the slot's stack.
    deeper: Chain,
    slot: u32,
    offset: u64,
    text_bytes: u64,
    data: u64,
    size: u64,
}

impl SlotPlace {
    fn field(&self, at: usize) -> u64 {
        self.offset + at as u64
    }
}

/// State of copying a ring.
struct RingReader<'a> {
    source: &'a dyn RingBytes,
    head: RingHead,
    sites: Sites,
    claimed: ClaimedRanges,
    tables: LossTables,
}

impl RingReader<'_> {
    /// Returns the location of a slot; `None` if its directory entry is invalid or the range is already in use.
    fn slot_place(&mut self, slot: u32) -> Option<SlotPlace> {
        let entry = self.head.entry(slot);
        let (offset, size) = (0..TRIES).find_map(|_| read_entry(self.source, slot, entry))?;
        let data = offset.checked_add(self.head.control_bytes)?;
        let end = data.checked_add(size)?;
        if !size.is_power_of_two() || size > MAX_RING_BYTES || end > self.source.len() {
            return None;
        }
        let text_bytes = u64::from(self.head.texts.slot_bytes);
        self.claimed.claim(offset.checked_sub(text_bytes)?..end)?;
        let link = offset + layout::SLOT_DEEPER_AT as u64;
        Some(SlotPlace {
            deeper: self.chain(link, slot, layout::DEEP_TEXT_BYTES),
            slot,
            offset,
            text_bytes,
            data,
            size,
        })
    }

    /// Copies a slot, together with its loss table entry at that moment.
    fn slot(&mut self, place: &SlotPlace) -> Option<(Slot, Option<losses::Entry>)> {
        let mut last = None;
        for _ in 0..TRIES {
            let before = self.tables.entry(self.source, place.slot);
            let Some(copy) = self.copy(place) else {
                continue;
            };
            // Otherwise events that the thread dropped in between would be in the copy and also be counted as lost.
            let entry = self.tables.entry(self.source, place.slot);
            if entry == before {
                return Some((copy, entry));
            }
            last = Some((copy, before));
        }
        last
    }

    /// Tries to copy a slot; `None` if it was invalid or another thread took it over in the meantime.
    fn copy(&mut self, place: &SlotPlace) -> Option<Slot> {
        let source = self.source;
        let field = |at: usize| u64_at(source, place.field(at));
        // One 64-bit word contains tid and generation.
        let identity_field =
            |identity: u64, at: usize| entry_u32(&identity.to_ne_bytes(), at - layout::SLOT_TID_AT);
        let identity = field(layout::SLOT_TID_AT)?;
        let state = field(layout::SLOT_STATE_AT)?;
        let flushed = field(layout::SLOT_FLUSHED_AT)?;
        let tid = identity_field(identity, layout::SLOT_TID_AT);
        let generation = identity_field(identity, layout::SLOT_GENERATION_AT);
        let (head, depth) = layout::head_and_depth(state, layout::key(place.slot, generation))?;
        if head.checked_sub(flushed)? > place.size {
            return None;
        }
        let depth = if tid == 0 { 0 } else { depth };
        let entries = self.entries(place, depth, head);
        let mut bytes = self.bytes(place, flushed..head)?;
        let spans = entries
            .into_iter()
            .filter_map(|entry| entry.span(self, tid));
        let open = spans.collect();
        fence(Ordering::Acquire);
        let flushed_after = field(layout::SLOT_FLUSHED_AT)?;
        let identity_after = field(layout::SLOT_TID_AT)?;
        if identity_field(identity_after, layout::SLOT_GENERATION_AT) != generation {
            return None;
        }
        // The writer may have overwritten bytes below `flushed_after` while they were copied. The fragment contains them.
        let from = flushed_after.clamp(flushed, head);
        bytes.drain(..usize::try_from(from - flushed).ok()?);
        Some(Slot {
            slot: place.slot,
            generation,
            from,
            head,
            bytes,
            open,
            place: (place.data, place.size),
        })
    }

    fn bytes(&self, place: &SlotPlace, range: Range<u64>) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
        let start = range.start % place.size;
        let first = usize::try_from(place.size - start).ok()?.min(bytes.len());
        let (front, back) = bytes.split_at_mut(first);
        self.source.read(place.data + start, front)?;
        self.source.read(place.data, back)?;
        Some(bytes)
    }

    /// Reads the entries of a slot's open spans and their texts. `head` is the end of the copied stream.
    fn entries(&mut self, place: &SlotPlace, depth: u64, head: u64) -> Vec<OpenEntry> {
        let area = Area {
            at: place.offset - place.text_bytes,
            bytes: place.text_bytes,
        };
        let stack = (0..layout::STACK_DEPTH).map(|index| {
            let at = layout::SLOT_STACK_AT + index * layout::OPEN_ENTRY_BYTES;
            (place.field(at), layout::STACK_NAME_AT, area)
        });
        let deeper = place
            .deeper
            .entries()
            .map(|place| (place.at, layout::LANE_NAME_AT, place.text));
        let stored = match usize::try_from(depth).unwrap_or(0) {
            layout::MAX_DEPTH => usize::MAX, // the depth is capped, so all deeper entries may be in use
            depth => depth,
        };
        // This is read before the entries: once the word is 0 again, the ended entry has no start time.
        let ending = u64_at(self.source, place.field(layout::SLOT_ENDING_AT)).unwrap_or(0);
        let ended = layout::ended_depth(ending, head);
        fence(Ordering::Acquire);
        let mut entries = Vec::new();
        for (index, (at, name_at, area)) in stack.chain(deeper).take(stored).enumerate() {
            let is_open = |entry: &OpenEntry| match index {
                layout::MAX_DEPTH.. => !entry.is_closed_at(head),
                _ => ended != Some(index),
            };
            entries.extend(OpenEntry::read(self, at, name_at, area).filter(is_open));
        }
        entries
    }
}

fn entry_u64(entry: &[u8], at: usize) -> u64 {
    let bytes = entry.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn entry_u32(entry: &[u8], at: usize) -> u32 {
    let bytes = entry.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests;
