//! Reads a snapshot of the ring file: the slots' contents that may not be in the fragment yet, and the open spans.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::losses;
use super::mapping::Mapping;

const FIRST_LANE: u64 = 1 << 22;
const STACK_ENTRIES: usize = 32;
const ENTRY_BYTES: usize = 64;
/// Number of times that a slot is read again if it changes meanwhile.
const TRIES: usize = 64;

/// Result of reading the ring that belongs to a fragment.
#[derive(Debug)]
pub(super) enum Ring {
    /// There is no ring file.
    Missing,
    /// The file cannot be read or is not a ring, for this reason.
    Bad(String),
    /// A ring.
    Good(Snapshot),
}

/// A copy of a ring at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Nonce, to compare with the header's.
    pub(super) nonce: u64,
    /// Slots that could be read.
    pub(super) slots: Vec<Slot>,
    /// Open spans as `B` events.
    pub(super) open: Vec<Value>,
    /// Losses that the ring reports, as `sa_loss` records.
    pub(super) losses: Vec<Vec<u8>>,
    /// Invalid slots and tables.
    pub(super) damage: Vec<String>,
}

/// Unflushed part of one slot's stream.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: usize,
    pub(super) generation: usize,
    /// Position of the first copied byte. After the copy, this is the slot's `flushed`.
    pub(super) from: u64,
    /// Position after the last complete line.
    pub(super) head: u64,
    /// Bytes of the positions `from..head`.
    pub(super) bytes: Vec<u8>,
}

impl Slot {
    /// Returns the stream to which the positions belong.
    pub(super) fn stream(&self) -> (u32, u32) {
        let [slot, generation] =
            [self.number, self.generation].map(|number| number.try_into().unwrap_or(u32::MAX));
        (slot, generation)
    }
}

impl Ring {
    /// Copies the ring at `path`.
    pub(super) fn snapshot(path: &Path) -> Ring {
        let map = || File::open(path).and_then(|file| Mapping::new(&file));
        // The ring of a live process grows. Slots that are in the directory before the file is mapped are also in the mapping.
        let maps = map().and_then(|first| Ok((Layout::new(&first).entered(), map()?)));
        let (entered, second) = match maps {
            Ok(maps) => maps,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ring::Missing,
            Err(error) => return Ring::Bad(error.to_string()),
        };
        match entered.and_then(|entered| Layout::new(&second).read(entered)) {
            Some(snapshot) => Ring::Good(snapshot),
            None => Ring::Bad(format!("no ring of version 1 in {} bytes", second.len())),
        }
    }
}

/// An open entry of the lane table.
struct LaneEntry {
    /// Offset of the entry.
    at: usize,
    /// Offset and size of the span's text.
    text: Option<(usize, usize)>,
    start: u64,
    /// Entry of the parent span.
    parent: Option<usize>,
}

/// Reads the parts of one mapped ring.
struct Layout<'a> {
    map: &'a Mapping,
    pid: usize,
}

impl Layout<'_> {
    fn new(map: &Mapping) -> Layout<'_> {
        Layout { map, pid: 0 }
    }

    /// Returns the number of directory entries up to the last slot in the file.
    fn entered(&self) -> Option<usize> {
        let (directory, room) = (self.map.u32_at(52)?, self.map.u32_at(56)?);
        let room = room.min(self.map.len() / 16);
        let last = (0..room)
            .rfind(|slot| !matches!(self.map.u64_at(directory + 16 * slot), None | Some(0)));
        Some(last.map_or(0, |slot| slot + 1))
    }

    /// Reads everything, including the first `entered` slots. Returns `None` if the file's header is invalid.
    fn read(mut self, entered: usize) -> Option<Snapshot> {
        let mut header = self.map.copy(0, 60)?;
        header[28..32].fill(0);
        let sum = low_half(xxh3_64(&header));
        let is_ring = self.map.copy(0, 8)? == b"SAPRING1" && self.map.u32_at(8)? == 1;
        if !is_ring || self.map.u32_at(28)? != sum {
            return None;
        }
        self.pid = self.map.u32_at(24)?;
        let mut snapshot = Snapshot {
            nonce: self.map.u64_at(16)?,
            ..Snapshot::default()
        };
        let directory = self.map.u32_at(52)?;
        for number in 0..entered {
            if self
                .slot(directory + 16 * number, number, &mut snapshot)
                .is_none()
            {
                snapshot.damage.push(format!("slot {number}"));
            }
        }
        if self.lanes(&mut snapshot).is_none() {
            snapshot.damage.push("lane table".to_owned());
        }
        snapshot.losses = losses::lines(self.map, self.pid, &snapshot.slots);
        Some(snapshot)
    }

    /// Copies one slot and its open spans. Returns `None` if its numbers are invalid.
    fn slot(&self, entry: usize, number: usize, snapshot: &mut Snapshot) -> Option<()> {
        let (at, size) = (0..TRIES).find_map(|_| self.entry(entry, number))?;
        if at == 0 {
            return Some(()); // the slot is not in the file
        }
        let page = self.map.u32_at(12)?;
        if !size.is_power_of_two() {
            return None;
        }
        let ring = at.checked_add(page.max(4096))?;
        self.map.copy(ring.checked_add(size)?.checked_sub(1)?, 1)?; // the whole slot must be in the file
        for _ in 0..TRIES {
            let generation = self.map.u32_at(at + 20)?;
            let Some((head, depth)) = published(self.map.u64_at(at)?, number, generation) else {
                continue; // another thread is claiming the slot
            };
            let flushed = self.map.u64_at(at + 8)?;
            let open = self.stack(number, at, depth, head);
            let bytes = self.stream(ring, size, flushed, head);
            let after = self.map.u64_at(at + 8)?;
            if self.map.u32_at(at + 20)? != generation {
                continue; // another thread claimed the slot meanwhile, so this stream is completely in the fragment
            }
            let Some(bytes) = bytes else {
                continue; // flushed beyond the head that was read before
            };
            let Some(open) = open else {
                continue; // the texts changed while they were read
            };
            snapshot.open.extend(open);
            snapshot
                .slots
                .push(above(number, generation, flushed, &bytes, after));
            return Some(());
        }
        None
    }

    /// Returns offset and ring size of a slot from its directory entry, or `None` if the entry does not match its checksum, for example while it is written.
    fn entry(&self, entry: usize, number: usize) -> Option<(usize, usize)> {
        let bytes = self.map.copy(entry, 16)?;
        let at = usize::try_from(u64::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        if at == 0 {
            return Some((0, 0));
        }
        let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let sum = xxh3_64_with_seed(&bytes[..12], u64::try_from(number).ok()?);
        let size = usize::try_from(half(8)?).ok()?;
        (usize::try_from(half(12)?).ok()? == low_half(sum)).then_some((at, size))
    }

    /// Copies the positions `from..to` of a ring of `size` bytes. Returns `None` if the range is invalid or outside the file.
    fn stream(&self, ring: usize, size: usize, from: u64, to: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(to.checked_sub(from)?)
            .ok()
            .filter(|len| *len <= size)?;
        let start = usize::try_from(from % u64::try_from(size).ok()?).ok()?;
        let first = len.min(size - start);
        let mut bytes = self.map.copy(ring + start, first)?;
        bytes.extend(self.map.copy(ring, len - first)?);
        Some(bytes)
    }

    /// Returns the open spans of slot `number` at `slot`, for a stack of depth `depth` and lines up to `head`.
    fn stack(&self, number: usize, slot: usize, depth: usize, head: u64) -> Option<Vec<Value>> {
        let tid = u64::try_from(self.map.u32_at(slot + 16)?).ok()?;
        let area = self.stack_text(slot);
        let stack = (0..STACK_ENTRIES).map(|level| (slot + 64 + ENTRY_BYTES * level, 16, area));
        let deeper = self.chain(slot + 24, number, 256).into_iter();
        let deeper = deeper.map(|(at, text)| (at, 32, Some((text, 256))));
        // 255 means 255 or more.
        let stored = if depth == 255 { usize::MAX } else { depth };
        let ending = self.map.u64_at(slot + 40)?;
        let has_ended = ending & 255 != 0 && head > ending >> 8;
        let mut open = Vec::new();
        for (level, (at, name, area)) in stack.chain(deeper).take(stored).enumerate() {
            let is_closed = match level {
                255.. => (1..=head).contains(&self.map.u64_at(at + 16)?),
                _ => has_ended && level as u64 == (ending & 255) - 1,
            };
            if self.map.u64_at(at)? != 0 && !is_closed {
                open.push(self.open_span(at, tid, at + name, area)?);
            }
        }
        Some(open)
    }

    /// Follows a chain of chunks from its first link. Returns the offset of each entry and of its text, which has `text_bytes` bytes.
    fn chain(&self, link: usize, seed: usize, text_bytes: usize) -> Vec<(usize, usize)> {
        let (mut entries_and_texts, mut link) = (Vec::new(), link);
        while let Some((at, size)) = self.entry(link, seed)
            && at > link
            && size > 64
        {
            let entries = (size - 64) / (ENTRY_BYTES + text_bytes);
            let texts = at + 64 + ENTRY_BYTES * entries;
            let nth_entry = |nth| (at + 64 + ENTRY_BYTES * nth, texts + text_bytes * nth);
            entries_and_texts.extend((0..entries).map(nth_entry));
            link = at;
        }
        entries_and_texts
    }

    /// Adds the open spans on virtual lanes in order of their start. Each span is on the lane of the outermost open span around it.
    fn lanes(&self, snapshot: &mut Snapshot) -> Option<()> {
        let open = self.open_lanes(snapshot)?;
        let mut order: Vec<(u64, usize)> =
            open.iter().map(|(lane, at)| (at.start, *lane)).collect();
        order.sort_unstable();
        for (_, lane) in order {
            let mut outermost = lane;
            while let Some(parent) = open[&outermost].parent
                && let Some(outer) = open.get(&parent)
                && outer.start < open[&outermost].start
            {
                outermost = parent;
            }
            let (entry, tid) = (&open[&lane], FIRST_LANE + u64::try_from(outermost).ok()?);
            let span = self.open_span(entry.at, tid, entry.at + 32, entry.text)?;
            snapshot.open.push(span);
        }
        Some(())
    }

    /// Returns the open entries of the lane table: those whose span's end has not been published by the closing slot.
    fn open_lanes(&self, snapshot: &Snapshot) -> Option<BTreeMap<usize, LaneEntry>> {
        let (table, count) = (self.map.u32_at(44)?, self.map.u32_at(48)?);
        let mut open = BTreeMap::new();
        let in_table = (0..count).map(|lane| (table + ENTRY_BYTES * lane, self.lane_text(lane)));
        let size = self.texts().map_or(0, |[.., size]| size);
        let further = self.chain(152, 0xffff_ffff, size).into_iter();
        let further = further.map(|(at, text)| (at, Some((text, size))));
        for (lane, (at, text)) in in_table.chain(further).enumerate() {
            let (start, closes_at) = (self.map.u64_at(at)?, self.map.u64_at(at + 16)?);
            let closing = self.map.u32_at(at + 24)?;
            let head = snapshot
                .slots
                .iter()
                .find(|slot| slot.number == closing)
                .map(|slot| slot.head);
            let closed = closes_at != 0 && head.is_some_and(|head| head >= closes_at);
            if start != 0 && !closed {
                let parent = self.map.u32_at(at + 28)?.checked_sub(1);
                let entry = LaneEntry {
                    at,
                    text,
                    start,
                    parent,
                };
                open.insert(lane, entry);
            }
        }
        Some(open)
    }

    /// Returns the four numbers at offset 128 of the header, which locate the text of open spans, if their checksum matches.
    fn texts(&self) -> Option<[usize; 4]> {
        let sum = low_half(xxh3_64(&self.map.copy(128, 16)?));
        let number = |at: usize| self.map.u32_at(128 + 4 * at);
        let numbers = [number(0)?, number(1)?, number(2)?, number(3)?];
        (number(4)? == sum).then_some(numbers)
    }

    /// Returns offset and size of the text area of a thread's spans.
    fn stack_text(&self, slot: usize) -> Option<(usize, usize)> {
        let [size, ..] = self.texts()?;
        Some((slot.checked_sub(size)?, size))
    }

    /// Returns offset and size of the text area of a lane in the table.
    fn lane_text(&self, lane: usize) -> Option<(usize, usize)> {
        let [_, directory, groups, size] = self.texts()?;
        let lanes_per_group = self.map.u32_at(48)?.checked_div(groups)?;
        let group = lane.checked_div(lanes_per_group)?;
        let (at, bytes) = self.entry(directory + 16 * group, group)?;
        let within = lane % lanes_per_group * size;
        (at != 0 && within + size <= bytes).then_some((at + within, size))
    }

    /// Returns an entry of a stack or of the lane table as a `B` event. `area` contains its text.
    fn open_span(
        &self,
        at: usize,
        tid: u64,
        name_at: usize,
        area: Option<(usize, usize)>,
    ) -> Option<Value> {
        let start_ns = self.map.u64_at(at)?;
        let (names, args) = self.text(at, area);
        let (name, category) = match self.map.u32_at(at + 8)? {
            0 if !names.is_empty() => name_and_category(&names)?,
            0 => {
                let len = self.map.u32_at(at + 12)?.min(at + ENTRY_BYTES - name_at);
                (
                    Value::from(String::from_utf8_lossy(&self.map.copy(name_at, len)?)),
                    Value::from(""),
                )
            }
            site => self.site(site)?,
        };
        let mut args: Value = serde_json::from_str(&format!("{{{args}}}")).ok()?;
        args["unfinished"] = true.into();
        #[expect(
            clippy::cast_precision_loss,
            reason = "ns since boot stay far below 2^53"
        )]
        let ts = start_ns as f64 / 1000.0;
        Some(
            json!({"ph": "B", "pid": self.pid, "tid": tid, "ts": ts, "name": name, "cat": category, "args": args}),
        )
    }

    /// Returns the JSON members that the entry at `at` has in the text area: name and category, and the args.
    fn text(&self, at: usize, area: Option<(usize, usize)>) -> (String, String) {
        let read = || {
            let (area, size) = area?;
            let number = |at: usize| {
                self.map
                    .copy(at, 2)?
                    .try_into()
                    .ok()
                    .map(u16::from_ne_bytes)
            };
            let from = self.map.u32_at(at + 56)?;
            let (names, args) = (number(at + 60)?.into(), number(at + 62)?.into());
            let inside = from + names + args <= size;
            let part = |from, len| String::from_utf8(self.map.copy(area + from, len)?).ok();
            Some((part(from, names)?, part(from + names, args)?)).filter(|_| inside)
        };
        read().unwrap_or_default()
    }

    /// Returns the name and category of a call site.
    fn site(&self, site: usize) -> Option<(Value, Value)> {
        let (table, used) = (self.map.u32_at(32)?, self.map.u32_at(36)?);
        let offset = site - 1;
        let len: [u8; 2] = self.map.copy(table + offset, 2)?.try_into().ok()?;
        let len = usize::from(u16::from_ne_bytes(len));
        if offset + 2 + len > used {
            return None;
        }
        name_and_category(&String::from_utf8(self.map.copy(table + offset + 2, len)?).ok()?)
    }
}

fn name_and_category(text: &str) -> Option<(Value, Value)> {
    let keys: Value = serde_json::from_str(&format!("{{{text}}}")).ok()?;
    Some((keys["name"].clone(), keys["cat"].clone()))
}

/// Returns head and depth from a slot's state, if its check bits match.
fn published(state: u64, slot: usize, generation: usize) -> Option<(u64, usize)> {
    let (head, depth) = (state >> 16, state >> 8 & 255);
    let depth_of_stack = usize::try_from(depth).ok()?;
    (checked_state(slot, generation, head, depth) == state).then_some((head, depth_of_stack))
}

/// Returns the state that publishes `head` and `depth` of a slot.
pub fn checked_state(slot: usize, generation: usize, head: u64, depth: u64) -> u64 {
    let value = head << 8 | depth;
    let key = (slot as u64 + 1) << 32 ^ generation as u64;
    let product = (value ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value << 8 | product >> 56
}

pub(super) fn low_half(sum: u64) -> usize {
    usize::try_from(sum & 0xffff_ffff).unwrap_or(usize::MAX)
}

/// Keeps the bytes at or above `after`. The writer may have overwritten lower ones while they were copied.
fn above(number: usize, generation: usize, from: u64, bytes: &[u8], after: u64) -> Slot {
    let skip = usize::try_from(after.saturating_sub(from))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let start = after.max(from);
    let head = start + u64::try_from(bytes.len() - skip).unwrap_or(0);
    Slot {
        number,
        generation,
        from: start,
        head,
        bytes: bytes[skip..].to_vec(),
    }
}
