//! Segments and ring of a recorder put together, each position once (FORMAT.md §4).

use crate::blocks::{Piece, Positions};
use crate::line::{parse, parse_canonical};
use crate::recording::Recording;
use crate::ring::{OpenSpan, rows};
use crate::scan::{Part, line_start};
use crate::spill::{List, Spill, Spilled, Writer};
use sa_recorder::format::{BLOCK_START, BlockHeader, LANE_BASE, TRACK_BASE};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A slot's stream: slot and generation.
pub(crate) type StreamKey = (u32, u32);

/// Missing positions of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) stream: StreamKey,
    pub(crate) range: Range<u64>,
    /// Segment and offset where the bytes should have been.
    pub(crate) place: (usize, u64),
}

/// Which parts of a recording count.
#[derive(Default)]
pub(crate) struct Assembly {
    /// What counts of each segment.
    segments: Vec<Kept>,
    /// Where the parts of the segments are.
    pub(crate) parts: Option<Arc<Spilled<Part>>>,
    /// Ring slots: index into the ring's slots, and the parts of their bytes that count.
    pub(crate) tail: Vec<(usize, Vec<Part>)>,
    /// The spans that were open, as `B` lines.
    pub(crate) open_lines: Vec<u8>,
    pub(crate) gaps: Vec<Gap>,
    /// Broken blocks that nothing else covers, with the positions they claim.
    pub(crate) bad_blocks: Vec<Gap>,
    /// Whether the fragment already goes beyond what the ring held of slot 0, as it does once it is settled.
    pub(crate) beyond_ring: bool,
}

/// The parts of a segment that count.
#[derive(Default)]
struct Kept {
    /// Of lines and complete blocks, in order.
    whole: List,
    /// Of broken blocks.
    broken: Vec<Part>,
}

impl Assembly {
    /// The parts of a segment that count, in order. Untrusted ones that touch are one, so that no line is cut where two pieces meet.
    pub(crate) fn parts(&self, segment: usize) -> impl Iterator<Item = Part> + '_ {
        let kept = self.segments.get(segment).zip(self.parts.as_deref());
        let whole = kept.map(|(kept, parts)| parts.list(&kept.whole));
        let broken = kept.map(|(kept, _)| kept.broken.iter().copied());
        let mut whole = whole.into_iter().flatten().peekable();
        let mut broken = broken.into_iter().flatten().peekable();
        let in_order = std::iter::from_fn(move || {
            let next = broken.peek().copied();
            let is_before = |part: &Part| next.is_none_or(|next| part.start <= next.start);
            whole.next_if(is_before).or_else(|| broken.next())
        });
        let mut in_order = in_order.peekable();
        std::iter::from_fn(move || {
            let mut part = in_order.next()?;
            let trusted = part.trusted;
            while let Some(next) =
                in_order.next_if(|next| !trusted && !next.trusted && next.start == part.end)
            {
                part.end = next.end;
            }
            Some(part)
        })
    }
}

impl Recording {
    /// Decides what counts, in memory. `pieces` are those of each segment.
    pub(crate) fn assemble(&self, pieces: &[Vec<(Range<usize>, Piece)>]) -> Assembly {
        let parts = Spill::new(&[]);
        let of = |segment: usize| pieces[segment].iter().cloned();
        let mut assembly = self.assemble_to(&parts, pieces.len(), of);
        // Without a folder there is no file that could fail.
        assembly.parts = parts.finish().ok().map(Arc::new);
        assembly
    }

    /// Decides what counts; `pieces` gives those of each of the `segments`. The caller says where the `parts` are once these are written.
    pub(crate) fn assemble_to<I: Iterator<Item = (Range<usize>, Piece)>>(
        &self,
        parts: &Spill<'_, Part>,
        segments: usize,
        pieces: impl Fn(usize) -> I,
    ) -> Assembly {
        let mut work = Work::new(self, parts);
        for segment in 0..segments {
            for (range, piece) in pieces(segment) {
                match piece {
                    Piece::Plain => work.outside(segment, range),
                    Piece::Complete(header) => work.complete(segment, range, &header),
                    Piece::Broken(header) => work.begins(segment, range.start, &header),
                }
            }
            work.end_segment();
        }
        work.explain_holes();
        work.ring();
        for segment in 0..segments {
            for (range, piece) in pieces(segment) {
                if let Piece::Broken(header) = piece {
                    work.broken(segment, range, &header);
                }
            }
        }
        let mut missing = work.missing();
        if !missing.is_empty() {
            for segment in 0..segments {
                for (range, piece) in pieces(segment) {
                    if let Piece::Complete(header) = piece {
                        missing.note(&header, (segment, range.start));
                    }
                }
            }
        }
        work.finish(missing)
    }
}

/// Positions that nothing covers, and the first block behind each: segment and offset of its body.
#[derive(Default)]
struct Missing(BTreeMap<StreamKey, Vec<Hole>>);

type Hole = (Range<u64>, Option<(u64, usize, usize)>);

impl Missing {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes a block at the last hole before it.
    fn note(&mut self, header: &BlockHeader, (segment, at): (usize, usize)) {
        let holes = self.0.get_mut(&(header.slot, header.generation));
        let before = holes.and_then(|holes| {
            let number = holes.partition_point(|(range, _)| range.end <= header.from);
            holes.get_mut(number.checked_sub(1)?)
        });
        if let Some((_, after)) = before {
            let place = (header.from, segment, at);
            *after = Some(after.map_or(place, |after| after.min(place)));
        }
    }

    /// Each hole, and the first block behind it, be it behind a later one as well.
    fn into_holes(self) -> impl Iterator<Item = (StreamKey, Hole)> {
        self.0.into_iter().flat_map(|(key, mut holes)| {
            let mut behind = None;
            for (_, after) in holes.iter_mut().rev() {
                *after = after.or(behind);
                behind = *after;
            }
            holes.into_iter().map(move |hole| (key, hole))
        })
    }
}

#[derive(Default)]
struct Stream {
    covered: Positions,
    /// Whole lines that incomplete blocks gave.
    saved: Positions,
    /// What incomplete blocks were to hold: told as bad blocks, so no gaps.
    claimed: Vec<Range<u64>>,
    /// Positions that should be covered, from what complete blocks and the ring say.
    expected: u64,
    /// First and last position of its blocks between two holes, by the number of holes before them.
    reaches: BTreeMap<usize, Range<u64>>,
}

impl Stream {
    fn holds(&self, positions: &Range<u64>) -> bool {
        let missing = |set: &Positions| set.missing(positions.clone());
        missing(&self.covered).is_empty() || missing(&self.saved).is_empty()
    }

    /// The lines of an incomplete block that nothing else holds, below position `bound`.
    fn save(
        &mut self,
        bytes: &[u8],
        body: &Range<usize>,
        claimed: &Range<u64>,
        bound: u64,
    ) -> Vec<Range<usize>> {
        let mut kept = Vec::new();
        let mut start = body.start;
        let position = |at: usize| claimed.start.saturating_add((at - body.start) as u64);
        while start < body.end && position(start) < bound {
            let end = memchr::memchr(b'\n', &bytes[start..body.end])
                .map_or(body.end, |at| start + at + 1);
            let positions = position(start).min(claimed.end)..position(end).min(claimed.end);
            // What stands behind the claimed bytes has no position of its own.
            if positions.is_empty() || !self.holds(&positions) {
                keep(&mut kept, start..end);
                if parse(bytes[start..end].trim_ascii()).is_ok() {
                    self.saved.add(positions);
                }
            }
            start = end;
        }
        kept
    }
}

/// Adds lines that nobody vouches for to those before, of which there may be very many.
fn keep(kept: &mut Vec<Range<usize>>, lines: Range<usize>) {
    match kept.last_mut() {
        Some(last) if last.end == lines.start => last.end = lines.end,
        _ => kept.push(lines),
    }
}

struct Work<'a, 's, 'f> {
    recording: &'a Recording,
    /// Parts of the segment that is looked at.
    whole: Writer<'s, 'f, Part>,
    streams: BTreeMap<StreamKey, Stream>,
    heads: BTreeMap<StreamKey, u64>,
    /// Where something is not looked at.
    holes: Vec<(usize, usize)>,
    /// [`span_key`] of the spans that ended after the ring was read.
    ended: HashSet<(i64, i64)>,
    result: Assembly,
}

impl<'a, 's, 'f> Work<'a, 's, 'f> {
    fn new(recording: &'a Recording, parts: &'s Spill<'f, Part>) -> Work<'a, 's, 'f> {
        let slots = recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
        let heads = slots
            .map(|slot| ((slot.slot, slot.generation), slot.head))
            .collect();
        Work {
            recording,
            whole: Writer::new(parts),
            streams: BTreeMap::new(),
            heads,
            holes: recording.holes(),
            ended: HashSet::new(),
            result: Assembly::default(),
        }
    }

    fn bytes(&self, segment: usize) -> &'a [u8] {
        self.recording.fragments[segment].content.bytes()
    }

    fn keep(&mut self, range: Range<usize>, trusted: bool) {
        if range.start < range.end {
            self.whole.push(Part {
                start: range.start,
                end: range.end,
                trusted,
            });
        }
    }

    /// The next parts are of the next segment.
    fn end_segment(&mut self) {
        self.result.segments.push(Kept {
            whole: self.whole.end(),
            broken: Vec::new(),
        });
    }

    /// Lines outside of blocks, but for what a newer segment tells better: of several records of removed segments the newest has them all.
    fn outside(&mut self, segment: usize, range: Range<usize>) {
        let fragments = &self.recording.fragments;
        let told = fragments[segment]
            .removal
            .as_ref()
            .map(|removal| removal.line.clone());
        let newer = fragments[segment + 1..]
            .iter()
            .any(|newer| newer.removal.is_some());
        match told.filter(|line| newer && range.start <= line.start && line.end <= range.end) {
            Some(line) => {
                self.keep(range.start..line.start, false);
                self.plain(segment, line.end..range.end);
            }
            None => self.plain(segment, range),
        }
    }

    /// Keeps lines. With a ring, the first bytes of a block header at the end of the file are a write that was under way, and so is a torn line among
    /// the first lines of the newest segment.
    fn plain(&mut self, segment: usize, range: Range<usize>) {
        let bytes = self.bytes(segment);
        let last = line_start(bytes, range.end, range.start);
        let tail = &bytes[last..range.end];
        let newest = segment > 0 && segment + 1 == self.recording.fragments.len();
        let under_way = self.recording.ring.is_some()
            && range.end == bytes.len()
            && (BLOCK_START.starts_with(tail)
                || tail.starts_with(BLOCK_START)
                || newest && range.start == 0 && !tail.ends_with(b"\n"));
        let end = if under_way { last } else { range.end };
        self.keep(range.start..end, false);
    }

    fn complete(&mut self, segment: usize, body: Range<usize>, header: &BlockHeader) {
        let key = (header.slot, header.generation);
        let end = header.from.saturating_add(header.len);
        self.begins(segment, body.start, header);
        if let Some(head) = self.heads.get(&key).copied().filter(|head| *head < end) {
            self.result.beyond_ring |= header.slot == 0;
            let beyond = header.from.max(head)..end;
            let range = within(self.bytes(segment), &body, header.from, &beyond);
            self.note_ended(&self.bytes(segment)[range]);
        }
        let stream = self.streams.entry(key).or_default();
        stream.expected = stream.expected.max(end);
        for fresh in stream.covered.add(header.from..end) {
            let range = within(self.bytes(segment), &body, header.from, &fresh);
            self.keep(range, true);
        }
    }

    /// Beyond the ring's snapshot the fragment has moved on: spans that stand there are not open any more.
    fn note_ended(&mut self, lines: &[u8]) {
        let spans = lines
            .split(|byte| *byte == b'\n')
            .filter_map(parse_canonical);
        let spans = spans.filter(|event| matches!(event.phase, b'X' | b'B'));
        self.ended
            .extend(spans.map(|event| span_key(event.tid, event.ts_ns)));
    }

    /// Notes where a stream is read again behind a hole.
    fn begins(&mut self, segment: usize, at: usize, header: &BlockHeader) {
        if self.holes.is_empty() {
            return;
        }
        let number = self.holes.partition_point(|hole| *hole <= (segment, at));
        let stream = self.streams.entry((header.slot, header.generation));
        let end = header.from.saturating_add(header.len);
        let reaches = &mut stream.or_default().reaches;
        let reach = reaches.entry(number).or_insert(header.from..end);
        *reach = reach.start.min(header.from)..reach.end.max(end);
    }

    /// What lies between the blocks on both sides of a hole is in it, and so is what the ring no more holds.
    fn explain_holes(&mut self) {
        if self.holes.is_empty() {
            return;
        }
        let ring = self.recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
        for slot in ring {
            let key = (slot.slot, slot.generation);
            let reaches = &mut self.streams.entry(key).or_default().reaches;
            reaches
                .entry(self.holes.len())
                .or_insert(slot.from..slot.from);
        }
        for stream in self.streams.values_mut() {
            let (mut holes, mut reached) = (0, 0);
            for (number, reach) in &stream.reaches {
                if *number > holes {
                    stream.covered.add(reached..reach.start);
                }
                (holes, reached) = (*number, reached.max(reach.end));
            }
        }
    }

    fn ring(&mut self) {
        let Some((ring, _)) = &self.recording.ring else {
            return;
        };
        for (index, slot) in ring.slots.iter().enumerate() {
            let stream = self
                .streams
                .entry((slot.slot, slot.generation))
                .or_default();
            stream.expected = stream.expected.max(slot.head);
            stream
                .covered
                .add(0..self.recording.removed_to((slot.slot, slot.generation)));
            let body = 0..slot.bytes.len();
            let parts: Vec<Part> = stream
                .covered
                .add(slot.from..slot.head)
                .iter()
                .map(|fresh| within(&slot.bytes, &body, slot.from, fresh))
                .map(|range| Part {
                    start: range.start,
                    end: range.end,
                    trusted: false,
                })
                .collect();
            if !parts.is_empty() {
                self.result.tail.push((index, parts));
            }
        }
        let pid = self
            .recording
            .header()
            .map_or(ring.pid, |header| header.pid);
        let outlived = self.recording.has_outlived_ring();
        let is_open = |span: &OpenSpan| !outlived && !self.has_ended(span);
        let threads = ring.slots.iter().flat_map(|slot| &slot.open);
        let lanes = rows(ring.lanes.iter().filter(|lane| is_open(&lane.span)));
        let open = threads.filter(|span| is_open(span)).chain(&lanes);
        self.result.open_lines = open_lines(pid, open);
    }

    fn has_ended(&self, span: &OpenSpan) -> bool {
        let start_ns = i64::try_from(span.start_ns).unwrap_or(i64::MAX);
        self.ended.contains(&span_key(span.tid.into(), start_ns))
    }

    /// Keeps what a broken block still holds, line by line: whole events once per position, damage where it stands. Of the last block
    /// of a file what lies beyond the ring's snapshot is being written right now: it does not count.
    fn broken(&mut self, segment: usize, body: Range<usize>, header: &BlockHeader) {
        let bytes = self.bytes(segment);
        let key = (header.slot, header.generation);
        let is_last = body.end == bytes.len();
        let bound = self.heads.get(&key).filter(|_| is_last).copied();
        let bound = bound.unwrap_or(u64::MAX);
        let end = header.from.saturating_add(header.len.min(1 << 32));
        let claimed = header.from..end.min(bound).max(header.from);
        let stream = self.streams.entry(key).or_default();
        if stream.covered.missing(claimed.clone()).is_empty() {
            return;
        }
        stream.claimed.push(claimed.clone());
        let kept = stream.save(bytes, &body, &claimed, bound);
        let part = |range: Range<usize>| Part {
            start: range.start,
            end: range.end,
            trusted: false,
        };
        let broken = &mut self.result.segments[segment].broken;
        broken.extend(kept.into_iter().map(part));
        let place = (segment, line_start(bytes, body.start - 1, 0) as u64);
        self.result.bad_blocks.push(Gap {
            stream: key,
            range: claimed,
            place,
        });
    }

    /// What nothing covers, and no incomplete block claims.
    fn missing(&mut self) -> Missing {
        let mut missing = Missing::default();
        for (key, stream) in &mut self.streams {
            for claimed in std::mem::take(&mut stream.claimed) {
                stream.covered.add(claimed);
            }
            let holes = stream.covered.missing(0..stream.expected);
            if !holes.is_empty() {
                let holes = holes.into_iter().map(|range| (range, None));
                missing.0.insert(*key, holes.collect());
            }
        }
        missing
    }

    fn finish(mut self, missing: Missing) -> Assembly {
        for kept in &mut self.result.segments {
            kept.broken.shrink_to_fit();
        }
        let last = self.recording.fragments.len().saturating_sub(1);
        for (stream, (range, after)) in missing.into_holes() {
            let at = after.map(|(_, segment, at)| (segment, at));
            // A loss is told after the block behind it was written, and that may stand where nothing is looked at.
            let unsure = self.recording.unsure.as_ref();
            if at.is_some_and(|at| unsure.is_some_and(|unsure| unsure.contains(&at))) {
                continue;
            }
            let place = at.unwrap_or_else(|| (last, self.bytes(last).len()));
            self.result.gaps.push(Gap {
                stream,
                range,
                place: (place.0, place.1 as u64),
            });
        }
        self.result
    }
}

/// What tells a span from others of its process. Those on lanes by their start alone: the row of one may change until it ends.
fn span_key(tid: i64, start_ns: i64) -> (i64, i64) {
    let is_lane = (i64::from(LANE_BASE)..i64::from(TRACK_BASE)).contains(&tid);
    (if is_lane { LANE_BASE.into() } else { tid }, start_ns)
}

/// The whole lines of a block's bytes that lie in `wanted` positions.
fn within(bytes: &[u8], body: &Range<usize>, from: u64, wanted: &Range<u64>) -> Range<usize> {
    let place = |position: u64| {
        body.start + usize::try_from(position - from).unwrap_or(usize::MAX - body.start)
    };
    let (mut start, mut end) = (
        place(wanted.start).min(body.end),
        place(wanted.end).min(body.end),
    );
    if start > body.start && bytes[start - 1] != b'\n' {
        start =
            memchr::memchr(b'\n', &bytes[start..body.end]).map_or(body.end, |at| start + at + 1);
    }
    if end < body.end {
        end = line_start(bytes, end, body.start);
    }
    start..end.max(start)
}

/// Open spans as canonical lines of unfinished spans.
pub(crate) fn open_lines<'a>(pid: u32, open: impl Iterator<Item = &'a OpenSpan>) -> Vec<u8> {
    let mut lines = Vec::new();
    for span in open {
        let (us, ns) = (span.start_ns / 1000, span.start_ns % 1000);
        let (tid, label) = (span.tid, &span.label);
        let line = format!(
            "{{\"ph\":\"B\",\"pid\":{pid},\"tid\":{tid},\"ts\":{us}.{ns:03},{label},\"args\":{{\"unfinished\":true}}}}\n"
        );
        lines.extend_from_slice(line.as_bytes());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::split;
    use crate::fragment::{Content, FileId, Fragment, RingFile};
    use crate::ring::{Ring, Slot};
    use crate::sample::header;
    use sa_recorder::format::block_sum;

    /// Twelve lines of four bytes; line `k` lies at position `4 * k`.
    fn lines(range: Range<usize>) -> Vec<u8> {
        range
            .flat_map(|number| format!("l{number:02}\n").into_bytes())
            .collect()
    }

    fn block(range: Range<usize>) -> Vec<u8> {
        let (from, body) = (4 * range.start as u64, lines(range));
        let sum = block_sum(1, 0, from, &body);
        let mut out = Vec::new();
        BlockHeader {
            slot: 1,
            generation: 0,
            from,
            len: body.len() as u64,
            sum,
        }
        .write(7, &mut out);
        out.extend_from_slice(&body);
        out
    }

    fn recording(bytes: Vec<u8>, ring: Option<Range<usize>>) -> Recording {
        let id = FileId {
            device: 0,
            inode: 0,
        };
        let fragment = Fragment {
            path: "f".into(),
            id,
            content: Content::Owned(bytes),
            header: Some(header(7)),
            removal: None,
            extents: None,
        };
        let ring = ring.map(|range| {
            let (from, head) = (4 * range.start as u64, 4 * range.end as u64);
            let slot = Slot {
                slot: 1,
                from,
                head,
                bytes: lines(range),
                ..Slot::default()
            };
            RingFile::Read(
                Ring {
                    nonce: 7,
                    pid: 7,
                    slots: vec![slot],
                    ..Ring::default()
                },
                id,
            )
        });
        Recording::new(vec![fragment], Some("r".into()), ring, false)
    }

    /// What counts, in order: the fragment's lines, then the ring's; and the assembly.
    fn assembled(bytes: Vec<u8>, ring: Option<Range<usize>>) -> (String, Assembly) {
        let recording = recording(bytes, ring);
        let bytes = recording.fragments[0].content.bytes();
        let assembly = recording.assemble(&[split(bytes)]);
        let mut text: Vec<u8> = assembly
            .parts(0)
            .flat_map(|part| &bytes[part.start..part.end])
            .copied()
            .collect();
        for (slot, parts) in &assembly.tail {
            let slot = &recording.ring.as_ref().unwrap().0.slots[*slot];
            text.extend(
                parts
                    .iter()
                    .flat_map(|part| &slot.bytes[part.start..part.end]),
            );
        }
        (
            String::from_utf8(text).unwrap().replace('\n', " "),
            assembly,
        )
    }

    fn gaps(assembly: &Assembly) -> Vec<Range<u64>> {
        assembly.gaps.iter().map(|gap| gap.range.clone()).collect()
    }

    #[test]
    fn each_position_counts_once() {
        let bytes = [block(0..3), block(1..5), block(0..3)].concat();
        let (text, assembly) = assembled(bytes, Some(4..7));
        assert_eq!(text, "l00 l01 l02 l03 l04 l05 l06 ");
        assert!(assembly.gaps.is_empty() && assembly.bad_blocks.is_empty());
    }

    #[test]
    fn beyond_the_snapshot_everything_counts() {
        let (text, assembly) = assembled([block(0..3), block(3..6)].concat(), Some(3..4));
        assert_eq!(text, "l00 l01 l02 l03 l04 l05 ");
        assert!(assembly.gaps.is_empty());
    }

    #[test]
    fn a_span_that_ended_beyond_the_snapshot_is_not_open() {
        let recording = recording(block(0..2), Some(2..3));
        let parts = Spill::new(&[]);
        let mut work = Work::new(&recording, &parts);
        work.note_ended(b"{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1.500,\"dur\":1.000,\"name\":\"n\",\"cat\":\"c\"}\n");
        assert!(work.ended.contains(&(2, 1500)));
    }

    #[test]
    fn a_gap_is_found_below_and_between_blocks_and_before_the_ring() {
        let (_, assembly) = assembled([block(1..2), block(3..4)].concat(), Some(5..6));
        assert_eq!(gaps(&assembly), [0..4, 8..12, 16..20]);
    }

    #[test]
    fn a_torn_block_counts_only_where_nothing_else_does() {
        let torn = &block(2..6)[..block(2..6).len() - 6];
        let (text, assembly) = assembled([block(0..2), torn.to_vec()].concat(), Some(2..6));
        assert_eq!(text, "l00 l01 l02 l03 l04 l05 ");
        assert!(assembly.bad_blocks.is_empty());
        let (text, assembly) = assembled([block(0..2), torn.to_vec()].concat(), None);
        assert_eq!(text, "l00 l01 l02 l03 l0");
        assert_eq!(assembly.bad_blocks.len(), 1);
        assert_eq!(assembly.bad_blocks[0].place, (0, block(0..2).len() as u64));
    }

    #[test]
    fn another_recorders_ring_is_not_taken() {
        let mut recording = recording(block(0..2), Some(2..3));
        let ring = recording
            .ring
            .take()
            .map(|(ring, id)| RingFile::Read(Ring { nonce: 8, ..ring }, id));
        let recording = Recording::new(recording.fragments, None, ring, false);
        assert!(recording.ring.is_none() && recording.bad_ring.is_some());
    }
}
