//! Joins a fragment's blocks and its ring, so that every position of every stream appears once. Reports gaps and broken blocks (FORMAT.md §4).

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
    /// Text.
    pub bytes: &'a [u8],
    /// Name of the file.
    pub file: String,
    /// Offset of the first byte in the file, or in the unflushed bytes of a slot of the ring.
    pub offset: usize,
    /// True for a line outside of blocks.
    pub is_plain: bool,
    /// True if a newline follows.
    pub is_ended: bool,
}

/// Contents of a fragment and its ring.
#[derive(Debug, Default)]
pub struct Stitched<'a> {
    /// Plain lines, then lines of complete blocks, of the ring, and of incomplete blocks. Blocks are sorted by slot, generation and position.
    pub lines: Vec<Line<'a>>,
    /// Unreadable places.
    pub damage: Vec<Damage>,
    /// Open spans in the ring, as `B` events.
    pub unfinished: Vec<Value>,
    /// File of each incomplete block, and the range of its lines.
    pub incomplete: Vec<(String, Range<usize>)>,
    /// For each incomplete block that shares positions with another one: number of its lines that were left out because they may be duplicates.
    pub repeated: Vec<usize>,
}

/// One slot in one generation.
type StreamKey = (u32, u32);

/// Ranges of positions that are accounted for, in any order.
#[derive(Clone, Debug, Default)]
struct Coverage(Vec<Range<u64>>);

impl Coverage {
    /// Returns the parts of `wanted` that no range covers, in order.
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

    /// Adds a range. A range that continues the last one is merged with it, so that a complete stream stays one range.
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

/// A fragment that is being joined with its ring.
struct Stitcher<'a> {
    fragment: &'a Fragment,
    ring: Option<&'a Snapshot>,
    /// True if the process is still running. The last block may then be incomplete without being damage.
    alive: bool,
    /// Positions of each stream that are accounted for.
    streams: BTreeMap<StreamKey, Coverage>,
    out: Stitched<'a>,
}

/// Joins a fragment with its ring. If the process is still `alive`, the last block may be incomplete, which is no damage.
pub(super) fn stitch<'a>(fragment: &'a Fragment, ring: &'a Ring, alive: bool) -> Stitched<'a> {
    let mut out = Stitched {
        damage: fragment.damage.clone(),
        ..Stitched::default()
    };
    let ring = usable(fragment, ring).unwrap_or_else(|(kind, why)| {
        let file = format!("{}.ring", fragment.name);
        out.damage.push(Damage::new(kind, file, why));
        None
    });
    let mut stitcher = Stitcher {
        fragment,
        ring,
        alive,
        streams: BTreeMap::new(),
        out,
    };
    stitcher.add_all();
    stitcher.out
}

/// Returns the ring if it belongs to this fragment and is needed. If it is unusable, returns the kind of damage and a reason.
fn usable<'a>(
    fragment: &Fragment,
    ring: &'a Ring,
) -> Result<Option<&'a Snapshot>, (&'static str, String)> {
    let header = fragment.header();
    let nonce = header.and_then(|header| u64::from_str_radix(header["nonce"].as_str()?, 16).ok());
    let is_in = |place| header.is_some_and(|header| header["ring"] == place);
    match ring {
        Ring::Good(snapshot) if nonce.is_none_or(|nonce| nonce == snapshot.nonce) => {
            Ok(Some(snapshot))
        }
        Ring::Good(snapshot) => Err(("bad_ring", format!("has nonce {:016x}", snapshot.nonce))),
        Ring::Bad(why) if !is_in("heap") => Err(("bad_ring", why.clone())),
        Ring::Missing if is_in("file") && !fragment.has_end() => {
            Err(("ring_missing", String::new()))
        }
        Ring::Bad(_) | Ring::Missing => Ok(None),
    }
}

impl<'a> Stitcher<'a> {
    fn add_all(&mut self) {
        self.add_plain();
        self.add_complete();
        self.explain_removals();
        self.add_ring();
        let ends = self.streams.iter();
        let ends = ends.map(|(key, coverage)| (*key, coverage.end()));
        let ends: BTreeMap<StreamKey, u64> = ends.collect();
        let damaged = self.add_incomplete();
        self.add_losses();
        self.explain_losses();
        self.report_incomplete(&damaged);
        if !self.has_stopped() {
            self.report_gaps(&ends);
        }
    }

    /// Returns the coverage of a stream.
    fn coverage(&mut self, key: StreamKey) -> &mut Coverage {
        self.streams.entry(key).or_default()
    }

    fn add_plain(&mut self) {
        for segment in &self.fragment.segments {
            let last = self.fragment.segments.last();
            let is_newest = last.is_some_and(|last| last.number == segment.number);
            let has_blocks = !segment.blocks.is_empty();
            let has_ring = self.ring.is_some();
            let being_made = is_newest && segment.number > 0 && has_ring && !has_blocks;
            let whole = segment.plain.iter().filter(|range| {
                !torn_without_loss(segment, range, self.alive || being_made, has_ring)
            });
            let whole = whole.map(|range| line(segment, range.clone(), true));
            self.out.lines.extend(whole);
        }
    }

    /// Adds the lines of complete blocks, each position once, and marks these positions as covered.
    fn add_complete(&mut self) {
        for (segment, block) in blocks_by_position(self.fragment, true) {
            let coverage = self.streams.entry(block.stream()).or_default();
            let lines = uncovered(segment, block, coverage);
            self.out.lines.extend(lines);
            coverage.add(block.positions());
        }
    }

    /// Adds the ring's lines above the highest complete block of each stream.
    fn add_ring(&mut self) {
        let Some(snapshot) = self.ring else {
            return;
        };
        let file = format!("{}.ring", self.fragment.name);
        let bad_ring = |file: &str, why: &str| Damage::new("bad_ring", file.into(), why.into());
        let damage = snapshot.damage.iter();
        let damage = damage.map(|part| bad_ring(&file, part));
        self.out.damage.extend(damage);
        self.out.unfinished.extend(snapshot.open.iter().cloned());
        for slot in &snapshot.slots {
            let coverage = self.streams.entry(slot.stream()).or_default();
            let skip = coverage.end().saturating_sub(slot.from);
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            let skip = skip.min(slot.bytes.len());
            let file = format!("{file} slot {}", slot.number);
            if slot.bytes.last().is_some_and(|byte| *byte != b'\n') {
                let damage = bad_ring(&file, "head is inside a line");
                self.out.damage.push(damage);
            }
            let found = lines_of(&slot.bytes, skip..slot.bytes.len());
            self.out.lines.extend(found.map(|range| Line {
                offset: range.start,
                ..ring_line(&slot.bytes[range], &file)
            }));
            coverage.add(slot.from..slot.head);
        }
    }

    /// Adds the losses that the ring reports, unless a later record in the fragment reports them as well.
    fn add_losses(&mut self) {
        let Some(snapshot) = self.ring else {
            return;
        };
        let parse = |line: &[u8]| serde_json::from_slice::<Value>(line).unwrap_or_default();
        let head = snapshot.slots.iter().find(|slot| slot.number == 0);
        let head = head.map_or(0, |slot| slot.head);
        let later = blocks_by_position(self.fragment, true).into_iter();
        let later = later.filter(|(_, block)| block.slot == 0 && block.positions().end > head);
        let later = later.flat_map(|(segment, block)| {
            lines_of(&segment.bytes, block.range.clone()).map(|range| &segment.bytes[range])
        });
        let reported: Vec<Value> = later.filter(|line| is_loss(line)).map(parse).collect();
        let is_reported = |loss: &[u8]| {
            let loss = parse(loss);
            let number = |value: &Value, key: &str| value["args"][key].as_u64();
            reported.iter().any(|report| match number(&loss, "to") {
                Some(to) => {
                    number(report, "slot") == number(&loss, "slot")
                        && number(report, "to") >= Some(to)
                }
                None => report["args"]["cause"] == loss["args"]["cause"],
            })
        };
        let file = format!("{}.ring losses", self.fragment.name);
        let losses = snapshot.losses.iter().filter(|loss| !is_reported(loss));
        let losses = losses.map(|loss| ring_line(loss, &file));
        self.out.lines.extend(losses);
    }

    /// Adds the lines of blocks with a wrong checksum that nothing else covers, and returns those blocks.
    fn add_incomplete(&mut self) -> Vec<(&'a Segment, &'a Block)> {
        let mut with_incomplete: BTreeMap<StreamKey, Coverage> = BTreeMap::new();
        let mut damaged = Vec::new();
        for (segment, block) in blocks_by_position(self.fragment, false) {
            let lines = block.header_at + 1..block.range.end;
            self.out.incomplete.push((segment.name.clone(), lines));
            let coverage = self.streams.entry(block.stream()).or_default();
            let missing = coverage.missing(block.positions());
            if missing.is_empty() {
                continue;
            }
            let claimed = with_incomplete.entry(block.stream());
            let claimed = claimed.or_insert_with(|| coverage.clone());
            let being_written = self.alive && block.range.end == segment.bytes.len();
            if !being_written {
                let all = lines_of(&segment.bytes, block.range.clone()).count();
                let lines = uncovered(segment, block, claimed);
                if claimed.missing(block.positions()) != missing {
                    self.out.repeated.push(all - lines.len());
                }
                self.out.lines.extend(lines);
                damaged.push((segment, block));
            }
            claimed.add(block.positions());
        }
        damaged
    }

    /// Reports damaged blocks, and marks the positions of all incomplete blocks as covered.
    fn report_incomplete(&mut self, damaged: &[(&Segment, &Block)]) {
        for (segment, block) in damaged {
            let missing = self.coverage(block.stream()).missing(block.positions());
            let kind = match missing.is_empty() {
                true => LOST_BLOCK,
                false => "bad_block",
            };
            self.out.damage.push(Damage {
                kind,
                file: segment.name.clone(),
                offset: block.header_at,
                detail: format!("slot {} from {} len {}", block.slot, block.from, block.len),
            });
        }
        for (_, block) in blocks_by_position(self.fragment, false) {
            self.coverage(block.stream()).add(block.positions());
        }
    }

    /// Returns the args of all lines that match.
    fn args(&self, is_wanted: fn(&[u8]) -> bool) -> Vec<Value> {
        let lines = self.out.lines.iter().filter(|line| is_wanted(line.bytes));
        let parsed = lines.filter_map(|line| serde_json::from_slice::<Value>(line.bytes).ok());
        parsed.map(|mut value| value["args"].take()).collect()
    }

    /// Marks the positions in removed segments as covered. A ring that was copied earlier may still contain them.
    fn explain_removals(&mut self) {
        for args in self.args(is_removal) {
            for stream in args["streams"].as_array().into_iter().flatten() {
                self.explain(&stream[0], &stream[1], Some(0), stream[2].as_u64());
            }
        }
    }

    /// Marks the positions in `sa_loss` records as covered.
    fn explain_losses(&mut self) {
        for args in self.args(is_loss) {
            let (from, to) = (args["from"].as_u64(), args["to"].as_u64());
            self.explain(&args["slot"], &args["gen"], from, to);
        }
    }

    /// Marks positions as covered if the record contains all numbers.
    fn explain(&mut self, slot: &Value, generation: &Value, from: Option<u64>, to: Option<u64>) {
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        if let (Some(slot), Some(generation)) = (number(slot), number(generation))
            && let (Some(from), Some(to)) = (from, to)
        {
            self.coverage((slot, generation)).add(from..to);
        }
    }

    /// Returns true if the recorder stopped recording events, which explains everything that is missing.
    fn has_stopped(&self) -> bool {
        let losses = self.args(is_loss);
        losses.iter().any(|args| args["stopped"] == true)
    }

    /// Reports the positions of each stream that nothing covers. `ends` contains the end of each stream's last complete line. Gaps above it have another kind.
    fn report_gaps(&mut self, ends: &BTreeMap<StreamKey, u64>) {
        for (key, coverage) in &mut self.streams {
            let (slot, generation) = key;
            let whole = ends.get(key).copied().unwrap_or(0);
            let parts = [
                ("gap", 0..whole),
                (GAP_AT_END, whole..coverage.end().max(whole)),
            ];
            for (kind, part) in parts {
                let missing = coverage.missing(part).into_iter();
                self.out.damage.extend(missing.map(|gap| {
                    let positions = format!("positions {}..{}", gap.start, gap.end);
                    let detail = format!("slot {slot} gen {generation} {positions}");
                    Damage::new(kind, self.fragment.name.clone() + ".jsonl", detail)
                }));
            }
        }
    }
}

/// Returns true for a torn plain line that loses nothing: the start of a block header whose write was repeated or, according to the ring, is in progress (FORMAT.md §4), or
/// any line that a live process is still writing.
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

/// Returns a line that is only in the ring.
fn ring_line<'a>(bytes: &'a [u8], file: &str) -> Line<'a> {
    Line {
        bytes,
        file: file.to_owned(),
        offset: 0,
        is_plain: false,
        is_ended: true,
    }
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

/// Returns the lines of a block that start at a position that is not covered yet.
fn uncovered<'a>(segment: &'a Segment, block: &Block, coverage: &Coverage) -> Vec<Line<'a>> {
    let is_covered = |range: &Range<usize>| {
        let offset = u64::try_from(range.start - block.range.start).unwrap_or(u64::MAX);
        coverage.has(block.from + offset)
    };
    let ranges = lines_of(&segment.bytes, block.range.clone());
    let ranges = ranges.filter(|range| !is_covered(range));
    ranges.map(|range| line(segment, range, false)).collect()
}
