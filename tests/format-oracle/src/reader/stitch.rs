//! Joins a fragment's blocks and its ring: every position of every stream once, with reports of gaps and broken blocks (FORMAT.md §4).

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::blocks::{BLOCK_START, Block};
use super::fragment::{Fragment, Segment, lines_of};
use super::ring::{Ring, Snapshot};
use super::{Damage, GAP_AT_END, LOST_BLOCK, is_loss, is_removal};

/// A line, without its newline.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its text.
    pub bytes: &'a [u8],
    /// Name of its file.
    pub file: String,
    /// Its first byte: the offset in the file, or in the unflushed bytes of a slot of the ring.
    pub offset: usize,
    /// True for a line outside of blocks.
    pub is_plain: bool,
    /// True if a newline follows.
    pub is_ended: bool,
}

/// The content of a fragment and its ring.
#[derive(Debug, Default)]
pub struct Stitched<'a> {
    /// Plain lines, lines of complete blocks, lines of the ring, lines of incomplete blocks. Blocks are in order of slot, generation and position.
    pub lines: Vec<Line<'a>>,
    /// The places that could not be read.
    pub damage: Vec<Damage>,
    /// Open spans of the ring, as `B` events.
    pub unfinished: Vec<Value>,
    /// The file of each incomplete block, and the range of its lines.
    pub incomplete: Vec<(String, Range<usize>)>,
    /// One number for each incomplete block that shares positions with another one: its lines that were left out because they may be the same lines.
    pub repeated: Vec<usize>,
}

/// One slot in one generation.
type StreamKey = (u32, u32);

/// Positions that are accounted for, as ranges in no order.
#[derive(Clone, Debug, Default)]
struct Coverage(Vec<Range<u64>>);

impl Coverage {
    /// The parts of `wanted` that no range covers, in order.
    fn missing(&mut self, wanted: Range<u64>) -> Vec<Range<u64>> {
        self.0.sort_by_key(|range| range.start);
        let mut missing = Vec::new();
        let mut at = wanted.start;
        let is_near = |range: &&Range<u64>| range.end > wanted.start && range.start < wanted.end;
        for range in self.0.iter().filter(is_near) {
            if range.start > at {
                missing.push(at..range.start);
            }
            at = at.max(range.end);
        }
        if at < wanted.end {
            missing.push(at..wanted.end);
        }
        missing
    }

    /// Adds a range; one that continues the last is joined to it, so that a whole stream stays one range.
    fn add(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    fn has(&self, position: u64) -> bool {
        self.0.iter().any(|range| range.contains(&position))
    }

    fn end(&self) -> u64 {
        self.0.iter().map(|range| range.end).max().unwrap_or(0)
    }
}

/// Joins a fragment with its ring. Of a process still `alive` the last block may be half written: that is no damage.
pub(super) fn stitch<'a>(fragment: &'a Fragment, ring: &'a Ring, alive: bool) -> Stitched<'a> {
    let mut out = Stitched {
        damage: fragment.damage.clone(),
        ..Stitched::default()
    };
    let snapshot = usable(fragment, ring, &mut out.damage);
    for segment in &fragment.segments {
        let last = fragment.segments.last();
        let is_newest = last.is_some_and(|last| last.number == segment.number);
        let has_blocks = !segment.blocks.is_empty();
        let being_made = is_newest && segment.number > 0 && snapshot.is_some() && !has_blocks;
        let whole = segment.plain.iter().filter(|range| {
            !torn_without_loss(segment, range, alive || being_made, snapshot.is_some())
        });
        out.lines
            .extend(whole.map(|range| line(segment, range.clone(), true)));
    }
    let mut streams = complete_blocks(fragment, &mut out.lines);
    explain_removals(&mut streams, &out.lines);
    if let Some(snapshot) = snapshot {
        add_ring(snapshot, fragment, &mut streams, &mut out);
    }
    let ends: BTreeMap<StreamKey, u64> = streams
        .iter()
        .map(|(key, coverage)| (*key, coverage.end()))
        .collect();
    let damaged = add_incomplete(fragment, alive, &mut streams, &mut out);
    if let Some(snapshot) = snapshot {
        add_losses(snapshot, fragment, &mut out);
    }
    explain_losses(&mut streams, &out.lines);
    report_incomplete(fragment, &damaged, &mut streams, &mut out.damage);
    if !has_stopped(&out.lines) {
        report_gaps(fragment, &ends, &mut streams, &mut out.damage);
    }
    out
}

/// The ring, if it is this fragment's; says why not where one is missing.
fn usable<'a>(
    fragment: &Fragment,
    ring: &'a Ring,
    damage: &mut Vec<Damage>,
) -> Option<&'a Snapshot> {
    let ring_file = || format!("{}.ring", fragment.name);
    let header = fragment.header();
    let nonce = header.and_then(|header| u64::from_str_radix(header["nonce"].as_str()?, 16).ok());
    match ring {
        Ring::Good(snapshot) if nonce.is_none_or(|nonce| nonce == snapshot.nonce) => {
            return Some(snapshot);
        }
        Ring::Good(snapshot) => {
            let why = format!("has nonce {:016x}", snapshot.nonce);
            damage.push(Damage::new("bad_ring", ring_file(), why));
        }
        Ring::Bad(_) if header.is_some_and(|header| header["ring"] == "heap") => {}
        Ring::Bad(why) => damage.push(Damage::new("bad_ring", ring_file(), why.clone())),
        Ring::Missing
            if header.is_some_and(|header| header["ring"] == "file") && !fragment.has_end() =>
        {
            damage.push(Damage::new("ring_missing", ring_file(), String::new()));
        }
        Ring::Missing => {}
    }
    None
}

/// Tells whether a plain line is the start of a block header whose write was repeated, or that a ring shows to be under way (FORMAT.md §4), or
/// any line that a living process is still writing.
fn torn_without_loss(segment: &Segment, range: &Range<usize>, alive: bool, has_ring: bool) -> bool {
    let bytes = &segment.bytes[range.clone()];
    let header_piece = bytes.starts_with(BLOCK_START) || BLOCK_START.starts_with(bytes);
    let at_end = range.end == segment.bytes.len();
    let next = segment.bytes.get(range.end + 1..);
    let repeated = next.is_some_and(|next| next.starts_with(BLOCK_START));
    header_piece && (repeated || at_end && has_ring) || at_end && alive
}

fn line(segment: &Segment, range: Range<usize>, is_plain: bool) -> Line<'_> {
    Line {
        file: segment.name.clone(),
        offset: range.start,
        is_plain,
        is_ended: range.end < segment.bytes.len(),
        bytes: &segment.bytes[range],
    }
}

/// Takes the lines of complete blocks, each position once, and remembers which positions they were.
fn complete_blocks<'a>(
    fragment: &'a Fragment,
    lines: &mut Vec<Line<'a>>,
) -> BTreeMap<StreamKey, Coverage> {
    let mut streams: BTreeMap<StreamKey, Coverage> = BTreeMap::new();
    for (segment, block) in blocks_by_position(fragment, true) {
        let coverage = streams.entry(block.stream()).or_default();
        take_uncovered(segment, block, coverage, lines);
        coverage.add(block.positions());
    }
    streams
}

/// Returns either the complete or the incomplete blocks, in order of slot, generation and position.
fn blocks_by_position(fragment: &Fragment, complete: bool) -> Vec<(&Segment, &Block)> {
    let all = fragment
        .segments
        .iter()
        .flat_map(|segment| segment.blocks.iter().map(move |block| (segment, block)));
    let mut blocks: Vec<_> = all
        .filter(|(_, block)| block.complete == complete)
        .collect();
    blocks.sort_by_key(|(_, block)| (block.stream(), block.from));
    blocks
}

/// Takes those lines of a block that start at a position not covered yet.
fn take_uncovered<'a>(
    segment: &'a Segment,
    block: &Block,
    coverage: &Coverage,
    lines: &mut Vec<Line<'a>>,
) {
    for range in lines_of(&segment.bytes, block.range.clone()) {
        let offset = u64::try_from(range.start - block.range.start).unwrap_or(u64::MAX);
        if !coverage.has(block.from + offset) {
            lines.push(line(segment, range, false));
        }
    }
}

/// Adds the ring's lines above the highest complete block of each stream.
fn add_ring<'a>(
    snapshot: &'a Snapshot,
    fragment: &Fragment,
    streams: &mut BTreeMap<StreamKey, Coverage>,
    out: &mut Stitched<'a>,
) {
    let file = format!("{}.ring", fragment.name);
    let damage = snapshot.damage.iter();
    out.damage
        .extend(damage.map(|part| Damage::new("bad_ring", file.clone(), part.clone())));
    out.unfinished.extend(snapshot.open.iter().cloned());
    for slot in &snapshot.slots {
        let coverage = streams.entry(slot.stream()).or_default();
        let skip = coverage.end().saturating_sub(slot.from);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let skip = skip.min(slot.bytes.len());
        let file = format!("{}.ring slot {}", fragment.name, slot.number);
        if slot.bytes.last().is_some_and(|byte| *byte != b'\n') {
            let detail = "head is inside a line".to_owned();
            let damage = Damage::new("bad_ring", file.clone(), detail);
            out.damage.push(damage);
        }
        let found = lines_of(&slot.bytes, skip..slot.bytes.len());
        out.lines.extend(found.map(|range| Line {
            file: file.clone(),
            offset: range.start,
            is_plain: false,
            is_ended: true,
            bytes: &slot.bytes[range],
        }));
        coverage.add(slot.from..slot.head);
    }
}

/// Adds the losses that the ring reports, except for those that a later record in the fragment reports, too.
fn add_losses<'a>(snapshot: &'a Snapshot, fragment: &Fragment, out: &mut Stitched<'a>) {
    let parse = |line: &[u8]| serde_json::from_slice::<Value>(line).unwrap_or_default();
    let head = snapshot.slots.iter().find(|slot| slot.number == 0);
    let head = head.map_or(0, |slot| slot.head);
    let later = fragment.segments.iter().flat_map(|segment| {
        let blocks = segment
            .blocks
            .iter()
            .filter(|block| block.complete && block.slot == 0);
        let blocks = blocks.filter(|block| block.positions().end > head);
        blocks.flat_map(|block| {
            lines_of(&segment.bytes, block.range.clone()).map(|range| &segment.bytes[range])
        })
    });
    let told: Vec<Value> = later.filter(|line| is_loss(line)).map(parse).collect();
    let is_told = |loss: &[u8]| {
        let loss = parse(loss);
        let number = |value: &Value, key: &str| value["args"][key].as_u64();
        told.iter().any(|told| match number(&loss, "to") {
            Some(to) => {
                number(told, "slot") == number(&loss, "slot") && number(told, "to") >= Some(to)
            }
            None => told["args"]["cause"] == loss["args"]["cause"],
        })
    };
    for bytes in snapshot.losses.iter().filter(|loss| !is_told(loss)) {
        out.lines.push(Line {
            bytes,
            file: format!("{}.ring losses", fragment.name),
            offset: 0,
            is_plain: false,
            is_ended: true,
        });
    }
}

/// Adds the lines of blocks that do not match and that nothing else covers, and returns those blocks.
fn add_incomplete<'a>(
    fragment: &'a Fragment,
    alive: bool,
    streams: &mut BTreeMap<StreamKey, Coverage>,
    out: &mut Stitched<'a>,
) -> Vec<(&'a Segment, &'a Block)> {
    let mut with_incomplete: BTreeMap<StreamKey, Coverage> = BTreeMap::new();
    let mut damaged = Vec::new();
    for (segment, block) in blocks_by_position(fragment, false) {
        let lines = block.header_at + 1..block.range.end;
        out.incomplete.push((segment.name.clone(), lines));
        let coverage = streams.entry(block.stream()).or_default();
        let missing = coverage.missing(block.positions());
        if missing.is_empty() {
            continue;
        }
        let claimed = with_incomplete.entry(block.stream());
        let claimed = claimed.or_insert_with(|| coverage.clone());
        let being_written = alive && block.range.end == segment.bytes.len();
        if !being_written {
            let lines = lines_of(&segment.bytes, block.range.clone()).count() + out.lines.len();
            take_uncovered(segment, block, claimed, &mut out.lines);
            if claimed.missing(block.positions()) != missing {
                out.repeated.push(lines - out.lines.len());
            }
            damaged.push((segment, block));
        }
        claimed.add(block.positions());
    }
    damaged
}

/// Reports damaged blocks, and counts the positions of all incomplete blocks as accounted for.
fn report_incomplete(
    fragment: &Fragment,
    damaged: &[(&Segment, &Block)],
    streams: &mut BTreeMap<StreamKey, Coverage>,
    damage: &mut Vec<Damage>,
) {
    for (segment, block) in damaged {
        let coverage = streams.entry(block.stream()).or_default();
        let is_lost = coverage.missing(block.positions()).is_empty();
        damage.push(Damage {
            kind: if is_lost { LOST_BLOCK } else { "bad_block" },
            file: segment.name.clone(),
            offset: block.header_at,
            detail: format!("slot {} from {} len {}", block.slot, block.from, block.len),
        });
    }
    for (_, block) in blocks_by_position(fragment, false) {
        let coverage = streams.entry(block.stream()).or_default();
        coverage.add(block.positions());
    }
}

/// Counts the positions that were in removed segments as accounted for; a ring that was copied before may hold them still.
fn explain_removals(streams: &mut BTreeMap<StreamKey, Coverage>, lines: &[Line<'_>]) {
    for line in lines.iter().filter(|line| is_removal(line.bytes)) {
        let value: Value = serde_json::from_slice(line.bytes).unwrap_or_default();
        let removed = value["args"]["streams"].as_array();
        for stream in removed.into_iter().flatten() {
            if let (Some(key), Some(to)) = (stream_key(&stream[0], &stream[1]), stream[2].as_u64())
            {
                streams.entry(key).or_default().add(0..to);
            }
        }
    }
}

/// Counts the positions that `sa_loss` records name as accounted for.
fn explain_losses(streams: &mut BTreeMap<StreamKey, Coverage>, lines: &[Line<'_>]) {
    for line in lines.iter().filter(|line| is_loss(line.bytes)) {
        let Ok(value) = serde_json::from_slice::<Value>(line.bytes) else {
            continue;
        };
        let args = &value["args"];
        if let (Some(key), Some(from), Some(to)) = (
            stream_key(&args["slot"], &args["gen"]),
            args["from"].as_u64(),
            args["to"].as_u64(),
        ) {
            streams.entry(key).or_default().add(from..to);
        }
    }
}

fn stream_key(slot: &Value, generation: &Value) -> Option<StreamKey> {
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    Some((number(slot)?, number(generation)?))
}

/// Tells whether the recorder has stopped keeping events, which explains whatever is missing.
fn has_stopped(lines: &[Line<'_>]) -> bool {
    let mut losses = lines.iter().filter(|line| is_loss(line.bytes));
    losses.any(|line| {
        serde_json::from_slice::<Value>(line.bytes)
            .is_ok_and(|value| value["args"]["stopped"] == true)
    })
}

/// Reports the positions of each stream that nothing accounts for. Those above the last complete line, which ends at `ends`, have a kind of their own.
fn report_gaps(
    fragment: &Fragment,
    ends: &BTreeMap<StreamKey, u64>,
    streams: &mut BTreeMap<StreamKey, Coverage>,
    damage: &mut Vec<Damage>,
) {
    for (key, coverage) in streams {
        let (slot, generation) = key;
        let whole = ends.get(key).copied().unwrap_or(0);
        let parts = [
            ("gap", 0..whole),
            (GAP_AT_END, whole..coverage.end().max(whole)),
        ];
        for (kind, part) in parts {
            damage.extend(coverage.missing(part).into_iter().map(|gap| {
                let positions = format!("positions {}..{}", gap.start, gap.end);
                let detail = format!("slot {slot} gen {generation} {positions}");
                Damage::new(kind, fragment.name.clone() + ".jsonl", detail)
            }));
        }
    }
}
