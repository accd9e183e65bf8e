//! The ring beside a fragment: what its process had not flushed yet, and the spans it was in (FORMAT.md §3).
//!
//! Everything in a ring is hostile until checked: offsets, sizes, counts, texts. Nothing is written.

mod chain;
mod lanes;
mod losses;
mod open;

use crate::fragment::assembly::StreamKey;
use chain::Chain;
pub use lanes::{OpenLane, rows};
pub(crate) use losses::LossCounts;
pub use open::OpenSpan;
use open::{Area, OpenEntry, Sites};
use sa_format::FragmentHeader;
use sa_format::loss::CountedLoss;
use sa_format::ring as layout;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

/// Most slots a ring is believed to have.
const MAX_SLOTS: u32 = 1 << 20;
/// Most lanes a ring is believed to have.
const MAX_LANES: u32 = 1 << 20;
/// Largest ring of one slot that is believed.
const MAX_RING_BYTES: u64 = 1 << 28;
/// No record of a recorder about itself is longer.
const MAX_OWN_RECORD_BYTES: usize = 4096;
/// How often a slot that keeps changing is read again.
const TRIES: u32 = 64;

/// Bytes of a ring that may change while they are read.
pub trait RingBytes {
    /// Fills `buffer` from `offset`; `None` if the ring is not that long.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()>;
    /// Length in bytes now: a live ring grows.
    fn len(&self) -> u64;
    /// Tells whether there is nothing at all.
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

/// What one slot still held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Its number.
    pub slot: u32,
    /// Its generation.
    pub generation: u32,
    /// Position of the first byte of `bytes`.
    pub from: u64,
    /// Position after the last whole line.
    pub head: u64,
    /// The lines from `from` to `head`.
    pub bytes: Vec<u8>,
    /// Spans open on its thread, outermost first.
    pub open: Vec<OpenSpan>,
    /// Where its ring bytes lie in the file, and how many they are.
    pub place: (u64, u64),
}

impl Slot {
    /// The stream of its bytes.
    pub(crate) fn stream(&self) -> StreamKey {
        (self.slot, self.generation)
    }

    /// Where in the ring's file the byte at `index` of `bytes` lies.
    pub fn file_offset(&self, index: u64) -> u64 {
        let (data, size) = self.place;
        data + (self.from + index) % size.max(1)
    }
}

/// A consistent copy of what a ring held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// The nonce, as the header's hex digits spell it.
    pub nonce: u64,
    /// The process.
    pub pid: u32,
    /// The slots that could be read.
    pub slots: Vec<Slot>,
    /// Spans open on virtual lanes.
    pub lanes: Vec<OpenLane>,
    /// Offsets of slots that made no sense.
    pub bad_slots: Vec<u64>,
    /// What it says was lost, that no record told when slot 0 had reached `told_to`.
    pub losses: Vec<CountedLoss>,
    /// Position of slot 0: records from there on may tell of those losses.
    pub(crate) told_to: u64,
    /// Offsets of the texts of open spans that are none.
    pub bad_texts: Vec<u64>,
}

impl Ring {
    /// Returns true if the recorder that wrote this header has the ring.
    pub(crate) fn belongs_to(&self, header: &FragmentHeader) -> bool {
        u64::from_str_radix(&header.nonce, 16) == Ok(self.nonce) && self.pid == header.pid
    }
}

/// Copies what a ring holds; `None` if it is no ring at all.
pub fn recover(source: &impl RingBytes) -> Option<Ring> {
    let head = RingHead::read(source)?;
    let mut sites = Sites::read(source, &head);
    let mut taken = Extents::default();
    let mut ring = Ring {
        nonce: head.nonce,
        pid: head.pid,
        ..Ring::default()
    };
    let mut tables = losses::LossTables::read(source);
    ring.losses = tables.counts(source, &head);
    ring.told_to = tables.read_at;
    let mut lost = Vec::new();
    // Of slots that overlap the first one counts.
    let mut first = place_of(source, &head, 0, &mut taken);
    // Slot 0 last: a record that told meanwhile what an entry says no more is in its copy.
    for slot in (1..head.directory_count).chain(0..head.directory_count.min(1)) {
        let entry = head.entry(slot);
        match u64_at(source, entry) {
            // Not used, or in the writer's memory only.
            Some(0) => {
                let entry = tables.entry(source, slot);
                lost.extend(entry.map(|entry| (slot, entry)));
            }
            _ => {
                let place = match slot {
                    0 => first.take(),
                    _ => place_of(source, &head, slot, &mut taken),
                };
                let copied = place.and_then(|place| read_slot(source, &place, &tables, &mut sites));
                match copied {
                    Some((copy, entry)) => {
                        lost.extend(entry.map(|entry| (slot, entry)));
                        ring.slots.push(copy);
                    }
                    None => ring.bad_slots.push(entry),
                }
            }
        }
    }
    ring.slots.sort_by_key(|slot| slot.slot);
    let first = ring.slots.first().filter(|slot| slot.slot == 0);
    let first_head = first.map_or(0, |slot| slot.head);
    for (number, entry) in lost {
        let copy = ring.slots.iter().find(|slot| slot.slot == number);
        let loss = losses::of_slot(&entry, number, copy, head.pid, first_head);
        ring.losses.extend(loss);
    }
    // Lanes come after the slots: a span that a line below some `head` closed is then seen as closed.
    let link = layout::MORE_LANES_AT as u64;
    let text_bytes = usize::try_from(head.texts.lane_bytes).unwrap_or(0);
    let more = Chain::read(
        source,
        link,
        layout::MORE_LANES_SEED,
        text_bytes,
        &mut taken,
    );
    ring.lanes = lanes::read(source, &head, &more, &mut sites, &ring.slots);
    ring.bad_texts = sites.bad_texts;
    Some(ring)
}

/// The ring bytes of the process's own slot as they lie, what was flushed too: its latest records, wherever one of them wraps in one piece.
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
    /// Where the text of open spans is; nowhere in older rings.
    texts: layout::TextAreas,
}

impl RingHead {
    fn read(source: &impl RingBytes) -> Option<RingHead> {
        let mut header = [0; layout::HEADER_BYTES];
        source.read(0, &mut header)?;
        let sum = layout::header_sum(&header);
        if !header.starts_with(&layout::MAGIC)
            || u32_at(source, layout::VERSION_AT)? != 1
            || u32_at(source, layout::SUM_AT)? != sum
        {
            return None;
        }
        let page = u32_at(source, layout::PAGE_BYTES_AT)?;
        let room = u32_at(source, layout::DIRECTORY_COUNT_AT)?;
        let lane_count = u32_at(source, layout::LANES_COUNT_AT)?;
        if room > MAX_SLOTS || lane_count > MAX_LANES || page > 1 << 24 {
            return None;
        }
        let sites = u64::from(u32_at(source, layout::SITES_OFFSET_AT)?);
        let sites_bytes = u64::from(u32_at(source, layout::SITES_BYTES_AT)?);
        let head = RingHead {
            nonce: u64_at(source, layout::NONCE_AT as u64)?,
            pid: u32_at(source, layout::PID_AT)?,
            control_bytes: u64::from(page).max(layout::SLOT_CONTROL_BYTES as u64),
            sites: sites..sites + sites_bytes,
            lanes: u64::from(u32_at(source, layout::LANES_OFFSET_AT)?),
            lane_count,
            directory: u64::from(u32_at(source, layout::DIRECTORY_OFFSET_AT)?),
            directory_count: room,
            texts: text_areas(source),
        };
        let directory_end = head.directory + u64::from(room) * layout::DIRECTORY_ENTRY_BYTES as u64;
        (directory_end <= source.len()).then_some(head)
    }

    /// Where the directory entry of a slot is.
    fn entry(&self, slot: u32) -> u64 {
        self.directory + u64::from(slot) * layout::DIRECTORY_ENTRY_BYTES as u64
    }
}

/// What the header says of the text of open spans.
fn text_areas(source: &impl RingBytes) -> layout::TextAreas {
    let mut fields = [0; layout::TEXT_AREAS_BYTES];
    let read = source.read(layout::TEXT_AREAS_AT as u64, &mut fields);
    let areas = read.and_then(|()| layout::TextAreas::of_fields(&fields));
    areas.unwrap_or_default()
}

/// What slots have taken of the file: no two of a ring overlap, so all their bytes together are no more than the file's.
#[derive(Default)]
struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// Takes a range that nobody has.
    fn take(&mut self, range: Range<u64>) -> Option<()> {
        let before = self.0.range(..range.end).next_back();
        if before.is_some_and(|(_, end)| *end > range.start) {
            return None;
        }
        self.0.insert(range.start, range.end);
        Some(())
    }
}

fn u32_at(source: &impl RingBytes, offset: usize) -> Option<u32> {
    let mut bytes = [0; 4];
    source.read(offset as u64, &mut bytes)?;
    Some(u32::from_ne_bytes(bytes))
}

/// Reads a counter that its writer may be storing: until it reads the same twice.
fn u64_at(source: &impl RingBytes, offset: u64) -> Option<u64> {
    let mut last = None;
    for _ in 0..TRIES {
        let mut bytes = [0; 8];
        source.read(offset, &mut bytes)?;
        fence(Ordering::Acquire);
        let value = u64::from_ne_bytes(bytes);
        if last == Some(value) {
            break;
        }
        last = Some(value);
    }
    last
}

/// Where a slot lies, if its directory entry may be true and no other slot is there.
fn place_of(
    source: &impl RingBytes,
    head: &RingHead,
    slot: u32,
    taken: &mut Extents,
) -> Option<SlotPlace> {
    let entry = head.entry(slot);
    let (offset, size) = (0..TRIES).find_map(|_| read_entry(source, slot, entry))?;
    let end = offset.checked_add(head.control_bytes)?.checked_add(size)?;
    if !size.is_power_of_two() || size > MAX_RING_BYTES || end > source.len() {
        return None;
    }
    let text_bytes = u64::from(head.texts.slot_bytes);
    taken.take(offset.checked_sub(text_bytes)?..end)?;
    let link = offset + layout::SLOT_DEEPER_AT as u64;
    let deeper = Chain::read(source, link, slot, layout::DEEP_TEXT_BYTES, taken);
    Some(SlotPlace {
        deeper,
        slot,
        offset,
        text_bytes,
        data: offset + head.control_bytes,
        size,
    })
}

/// The copy of a slot, and its entry of the loss table at that moment.
fn read_slot(
    source: &impl RingBytes,
    place: &SlotPlace,
    tables: &losses::LossTables,
    sites: &mut Sites,
) -> Option<(Slot, Option<losses::Entry>)> {
    let mut last = None;
    for _ in 0..TRIES {
        let before = tables.entry(source, place.slot);
        let Some(copy) = place.copy(source, sites) else {
            continue;
        };
        // What a thread gave up in between would be both in the copy and lost.
        let entry = tables.entry(source, place.slot);
        if entry == before {
            return Some((copy, entry));
        }
        last = Some((copy, before));
    }
    last
}

/// Offset and ring size of a slot; `None` if its directory entry does not match its sum.
fn read_entry(source: &impl RingBytes, slot: u32, entry: u64) -> Option<(u64, u64)> {
    let mut bytes = [0; layout::DIRECTORY_ENTRY_BYTES];
    source.read(entry, &mut bytes)?;
    let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let offset = u64::from_ne_bytes(*bytes.first_chunk()?);
    let (size, sum) = (half(layout::ENTRY_SIZE_AT)?, half(layout::ENTRY_SUM_AT)?);
    (layout::entry_sum(slot, offset, size) == sum).then_some((offset, u64::from(size)))
}

/// Where a slot lies.
struct SlotPlace {
    /// The entries of the spans that are deeper than its stack.
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

    /// One attempt; `None` if the slot made no sense or changed hands meanwhile.
    fn copy(&self, source: &impl RingBytes, sites: &mut Sites) -> Option<Slot> {
        let identity = u64_at(source, self.field(layout::SLOT_TID_AT))?;
        let state = u64_at(source, self.field(layout::SLOT_STATE_AT))?;
        let flushed = u64_at(source, self.field(layout::SLOT_FLUSHED_AT))?;
        let (tid, generation) = split_identity(identity);
        let (head, depth) = layout::head_and_depth(state, layout::key(self.slot, generation))?;
        if head.checked_sub(flushed)? > self.size {
            return None;
        }
        let depth = if tid == 0 { 0 } else { depth };
        let entries = self.entries(source, depth, head, sites);
        let mut bytes = self.bytes(source, flushed..head)?;
        let open = entries.into_iter();
        let open = open.filter_map(|entry| entry.span(source, tid, sites));
        let open = open.collect();
        fence(Ordering::Acquire);
        let flushed_after = u64_at(source, self.field(layout::SLOT_FLUSHED_AT))?;
        if u64_at(source, self.field(layout::SLOT_TID_AT))? >> 32 != identity >> 32
            && cfg!(target_endian = "little")
        {
            return None;
        }
        // Below the second value the writer may have overwritten what was copied; the fragment has it.
        let from = flushed_after.clamp(flushed, head);
        bytes.drain(..usize::try_from(from - flushed).ok()?);
        Some(Slot {
            slot: self.slot,
            generation,
            from,
            head,
            bytes,
            open,
            place: (self.data, self.size),
        })
    }

    fn bytes(&self, source: &impl RingBytes, range: Range<u64>) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
        let start = range.start % self.size;
        let first = usize::try_from(self.size - start).ok()?.min(bytes.len());
        let (front, back) = bytes.split_at_mut(first);
        source.read(self.data + start, front)?;
        source.read(self.data, back)?;
        Some(bytes)
    }

    /// Reads the entries of the open spans of a stream that ends at `head`, with their texts.
    fn entries(
        &self,
        source: &impl RingBytes,
        depth: u64,
        head: u64,
        sites: &mut Sites,
    ) -> Vec<OpenEntry> {
        let area = Area {
            at: self.offset - self.text_bytes,
            bytes: self.text_bytes,
        };
        let stack = (0..layout::STACK_DEPTH).map(|index| {
            let at = layout::SLOT_STACK_AT + index * layout::OPEN_ENTRY_BYTES;
            (self.field(at), layout::STACK_NAME_AT, area)
        });
        let deeper = self.deeper.entries();
        let deeper = deeper.map(|place| (place.at, layout::LANE_NAME_AT, place.text));
        let stored = match usize::try_from(depth).unwrap_or(0) {
            layout::MAX_DEPTH => usize::MAX, // and any that is deeper
            depth => depth,
        };
        // Before the entries: once the word is 0 again, the entry has no start.
        let ending = u64_at(source, self.field(layout::SLOT_ENDING_AT)).unwrap_or(0);
        let ended = layout::ended_depth(ending, head);
        fence(Ordering::Acquire);
        let mut entries = Vec::new();
        for (index, (at, name_at, area)) in stack.chain(deeper).take(stored).enumerate() {
            let entry = OpenEntry::read(source, at, name_at, area, sites);
            let is_open = |entry: &OpenEntry| match index {
                layout::MAX_DEPTH.. => !entry.is_closed_at(head),
                _ => ended != Some(index),
            };
            entries.extend(entry.filter(is_open));
        }
        entries
    }
}

/// Tid and generation, which lie side by side.
fn split_identity(word: u64) -> (u32, u32) {
    let bytes = word.to_ne_bytes();
    let half = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(0, |four| u32::from_ne_bytes(*four))
    };
    (
        half(0),
        half(layout::SLOT_GENERATION_AT - layout::SLOT_TID_AT),
    )
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
