//! Joins a fragment's blocks and its ring: every position of every stream once, gaps and broken blocks told (FORMAT.md §4).

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::blocks::{BLOCK_START, Block};
use super::fragment::{Fragment, Segment, lines_of};
use super::ring::{Ring, Snapshot};
use super::{is_loss, is_removal};

/// A whole line and where it was found.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) place: String,
}

/// What a fragment and its ring hold together.
#[derive(Debug, Default)]
pub(super) struct Stitched<'a> {
    pub(super) lines: Vec<Line<'a>>,
    pub(super) damage: Vec<String>,
    pub(super) unfinished: Vec<Value>,
}

/// One slot in one generation.
type StreamKey = (u64, u64);

/// Positions that are accounted for, as ranges in no order.
#[derive(Debug, Default)]
struct Coverage(Vec<Range<u64>>);

impl Coverage {
    /// The parts of `wanted` that no range covers, in order.
    fn missing(&mut self, wanted: Range<u64>) -> Vec<Range<u64>> {
        self.0.sort_by_key(|range| range.start);
        let mut missing = Vec::new();
        let mut at = wanted.start;
        for range in self
            .0
            .iter()
            .filter(|range| range.end > wanted.start && range.start < wanted.end)
        {
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
    let mut out = Stitched::default();
    let snapshot = usable(fragment, ring, &mut out.damage);
    for segment in &fragment.segments {
        let newest = fragment
            .segments
            .last()
            .is_some_and(|last| last.number == segment.number);
        let being_made =
            newest && segment.number > 0 && snapshot.is_some() && segment.blocks.is_empty();
        let whole = segment.plain.iter().filter(|range| {
            !torn_without_loss(segment, range, alive || being_made, snapshot.is_some())
        });
        out.lines
            .extend(whole.map(|range| line(segment, range.clone())));
    }
    let mut streams = complete_blocks(fragment, &mut out.lines);
    explain_removals(&mut streams, &out.lines);
    if let Some(snapshot) = snapshot {
        add_ring(snapshot, fragment, &mut streams, &mut out);
    }
    add_incomplete(fragment, alive, &mut streams, &mut out);
    if let Some(snapshot) = snapshot {
        add_losses(snapshot, fragment, &mut out);
    }
    explain_losses(&mut streams, &out.lines);
    if !has_stopped(&out.lines) {
        report_gaps(fragment, snapshot, &mut streams, &mut out.damage);
    }
    out
}

/// The ring, if it is this fragment's; says why not where one is missing.
fn usable<'a>(
    fragment: &Fragment,
    ring: &'a Ring,
    damage: &mut Vec<String>,
) -> Option<&'a Snapshot> {
    let header = fragment.header();
    let nonce = header.and_then(|header| u64::from_str_radix(header["nonce"].as_str()?, 16).ok());
    match ring {
        Ring::Good(snapshot) if nonce.is_none_or(|nonce| nonce == snapshot.nonce) => {
            return Some(snapshot);
        }
        Ring::Good(snapshot) => damage.push(format!(
            "bad_ring {} has nonce {:016x}",
            fragment.name, snapshot.nonce
        )),
        Ring::Bad(_) if header.is_some_and(|header| header["ring"] == "heap") => {}
        Ring::Bad(why) => damage.push(format!("bad_ring {} {why}", fragment.name)),
        Ring::Missing
            if header.is_some_and(|header| header["ring"] == "file") && !fragment.has_end() =>
        {
            damage.push(format!("ring_missing {}", fragment.name));
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

fn line(segment: &Segment, range: Range<usize>) -> Line<'_> {
    let place = format!("{}:{}", segment.name, range.start);
    Line {
        bytes: &segment.bytes[range],
        place,
    }
}

/// Takes the lines of complete blocks, each position once, and remembers which positions they were.
fn complete_blocks<'a>(
    fragment: &'a Fragment,
    lines: &mut Vec<Line<'a>>,
) -> BTreeMap<StreamKey, Coverage> {
    let mut streams: BTreeMap<StreamKey, Coverage> = BTreeMap::new();
    for segment in &fragment.segments {
        for block in segment.blocks.iter().filter(|block| block.complete) {
            let coverage = streams.entry((block.slot, block.generation)).or_default();
            take_uncovered(segment, block, coverage, lines);
            coverage.add(block.positions());
        }
    }
    streams
}

/// Takes those lines of a block that start at a position not covered yet; tells how many.
fn take_uncovered<'a>(
    segment: &'a Segment,
    block: &Block,
    coverage: &Coverage,
    lines: &mut Vec<Line<'a>>,
) {
    for range in lines_of(&segment.bytes, block.range.clone()) {
        let offset = u64::try_from(range.start - block.range.start).unwrap_or(u64::MAX);
        if !coverage.has(block.from + offset) {
            lines.push(line(segment, range));
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
    out.damage.extend(
        snapshot
            .damage
            .iter()
            .map(|damage| format!("{damage} in {}.ring", fragment.name)),
    );
    out.unfinished.extend(snapshot.open.iter().cloned());
    for slot in &snapshot.slots {
        let key = (
            slot.number.try_into().unwrap_or(u64::MAX),
            slot.generation.try_into().unwrap_or(u64::MAX),
        );
        let coverage = streams.entry(key).or_default();
        let skip = coverage.end().saturating_sub(slot.from);
        let skip = usize::try_from(skip)
            .unwrap_or(usize::MAX)
            .min(slot.bytes.len());
        if slot.bytes.last().is_some_and(|byte| *byte != b'\n') {
            out.damage.push(format!(
                "bad_ring {}.ring slot {}: head is inside a line",
                fragment.name, slot.number
            ));
        }
        let place = |range: &Range<usize>| {
            format!(
                "{}.ring slot {} +{}",
                fragment.name, slot.number, range.start
            )
        };
        let found = lines_of(&slot.bytes, skip..slot.bytes.len());
        out.lines.extend(found.map(|range| Line {
            place: place(&range),
            bytes: &slot.bytes[range],
        }));
        coverage.add(slot.from..slot.head);
    }
}

/// Adds what the ring says is lost, but for what a record tells that was written after the ring was copied.
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
        let place = format!("{}.ring losses", fragment.name);
        out.lines.push(Line { bytes, place });
    }
}

/// Saves what it can of blocks that do not match and that nothing else covers.
fn add_incomplete<'a>(
    fragment: &'a Fragment,
    alive: bool,
    streams: &mut BTreeMap<StreamKey, Coverage>,
    out: &mut Stitched<'a>,
) {
    for segment in &fragment.segments {
        for block in segment.blocks.iter().filter(|block| !block.complete) {
            let coverage = streams.entry((block.slot, block.generation)).or_default();
            if coverage.missing(block.positions()).is_empty() {
                continue;
            }
            let being_written = alive && block.range.end == segment.bytes.len();
            if !being_written {
                out.damage.push(format!(
                    "bad_block {}:{} slot {} from {} len {}",
                    segment.name, block.range.start, block.slot, block.from, block.len
                ));
                let mut saved = Vec::new();
                take_uncovered(segment, block, coverage, &mut saved);
                out.lines.extend(saved);
            }
            coverage.add(block.positions());
        }
    }
}

/// Counts the positions that were in removed segments as accounted for; a ring that was copied before may hold them still.
fn explain_removals(streams: &mut BTreeMap<StreamKey, Coverage>, lines: &[Line<'_>]) {
    for line in lines.iter().filter(|line| is_removal(line.bytes)) {
        let value: Value = serde_json::from_slice(line.bytes).unwrap_or_default();
        let removed = value["args"]["streams"].as_array();
        for stream in removed.into_iter().flatten() {
            let number = |at: usize| stream[at].as_u64();
            if let (Some(slot), Some(generation), Some(to)) = (number(0), number(1), number(2)) {
                streams.entry((slot, generation)).or_default().add(0..to);
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
        let number = |key: &str| value["args"][key].as_u64();
        if let (Some(slot), Some(generation), Some(from), Some(to)) =
            (number("slot"), number("gen"), number("from"), number("to"))
        {
            streams.entry((slot, generation)).or_default().add(from..to);
        }
    }
}

/// Tells whether the recorder has stopped keeping events, which explains whatever is missing.
fn has_stopped(lines: &[Line<'_>]) -> bool {
    let mut losses = lines.iter().filter(|line| is_loss(line.bytes));
    losses.any(|line| {
        serde_json::from_slice::<Value>(line.bytes)
            .is_ok_and(|value| value["args"]["stopped"] == true)
    })
}

/// Reports the positions of each stream that nothing accounts for, up to its highest block or the ring's `flushed`.
fn report_gaps(
    fragment: &Fragment,
    snapshot: Option<&Snapshot>,
    streams: &mut BTreeMap<StreamKey, Coverage>,
    damage: &mut Vec<String>,
) {
    let flushed = |key: StreamKey| {
        let slots = snapshot.iter().flat_map(|snapshot| &snapshot.slots);
        let mut same = slots.filter(|slot| {
            (u64::try_from(slot.number), u64::try_from(slot.generation)) == (Ok(key.0), Ok(key.1))
        });
        same.next().map_or(0, |slot| slot.from)
    };
    for (key, coverage) in streams.iter_mut() {
        let end = coverage.end().max(flushed(*key));
        for gap in coverage.missing(0..end) {
            damage.push(format!(
                "gap {} slot {} gen {} positions {}..{}",
                fragment.name, key.0, key.1, gap.start, gap.end
            ));
        }
    }
}
