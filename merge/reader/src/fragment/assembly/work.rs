//! Decides which parts of a recording count.

use super::missing::{Edge, Missing};
use super::open::{EndedSpans, open_lines};
use super::stream::Stream;
use super::{Assembly, Gap, SegmentParts, StreamKey};
use crate::event::scan::{Part, line_start};
use crate::fragment::blocks::Piece;
use crate::fragment::recording::Recording;
use crate::fragment::ring::{OpenSpan, ReportedLosses, Slot, shown_lanes};
use crate::store::spill_vec::{Spill, Writer};
use sa_format::{BLOCK_START, BlockHeader};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

impl Recording {
    /// Decides which parts count, and keeps them in memory. `pieces` contains the pieces of each segment.
    pub fn assemble(&self, pieces: &[Vec<(Range<usize>, Piece)>]) -> Assembly {
        let parts = Spill::new(&[]);
        let segment_pieces = |segment: usize| pieces[segment].iter().cloned();
        let mut assembly = self.assemble_to(&parts, pieces.len(), segment_pieces);
        // Without a folder there is no file that could fail.
        assembly.parts = parts.finish().ok().map(Arc::new);
        assembly
    }

    /// Decides which parts count. `pieces` returns the pieces of a segment. The caller sets `parts` of the result when the spill is finished.
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
                    Piece::Broken(header) => work.extend_run(segment, &header),
                }
            }
            work.end_segment();
        }
        work.cover_left_out();
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
                        missing.add_block(&header, segment, &range);
                    }
                }
            }
        }
        work.finish(missing)
    }
}

struct Work<'a, 's, 'f> {
    recording: &'a Recording,
    /// Parts of the current segment.
    whole: Writer<'s, 'f, Part>,
    streams: BTreeMap<StreamKey, Stream>,
    ring_ends: BTreeMap<StreamKey, u64>,
    /// For each segment, the number of places before it where segments are left out.
    left_out_before: Vec<usize>,
    /// Spans that ended after the ring was read.
    ended: EndedSpans,
    /// Losses that were reported after the ring was read.
    reported: ReportedLosses,
    result: Assembly,
}

impl<'a, 's, 'f> Work<'a, 's, 'f> {
    fn new(recording: &'a Recording, parts: &'s Spill<'f, Part>) -> Work<'a, 's, 'f> {
        let slots = recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
        let ring_ends = slots
            .map(|slot| ((slot.slot, slot.generation), slot.head))
            .collect();
        Work {
            recording,
            whole: Writer::new(parts),
            streams: BTreeMap::new(),
            ring_ends,
            left_out_before: left_out_before(recording),
            ended: EndedSpans::default(),
            reported: ReportedLosses::default(),
            result: Assembly::default(),
        }
    }

    fn bytes(&self, segment: usize) -> &'a [u8] {
        self.recording.fragments[segment].content.bytes()
    }

    fn add_part(&mut self, range: Range<usize>, trusted: bool) {
        if range.start < range.end {
            self.whole.push(Part::from_range(range, trusted));
        }
    }

    /// Completes the current segment. Later parts belong to the next one.
    fn end_segment(&mut self) {
        self.result.segments.push(SegmentParts {
            whole: self.whole.end(),
            broken: Vec::new(),
        });
    }

    /// Keeps lines outside of blocks. A record of removed segments is dropped if a newer segment has one, which then includes all that were removed
    /// earlier.
    fn outside(&mut self, segment: usize, range: Range<usize>) {
        let fragments = &self.recording.fragments;
        let removal = fragments[segment].removal.as_ref();
        let removal_line = removal.map(|removal| removal.line.clone());
        let newer = fragments[segment + 1..]
            .iter()
            .any(|newer| newer.removal.is_some());
        match removal_line
            .filter(|line| newer && range.start <= line.start && line.end <= range.end)
        {
            Some(line) => {
                self.add_part(range.start..line.start, false);
                self.plain(segment, line.end..range.end);
            }
            None => self.plain(segment, range),
        }
    }

    /// Keeps lines. If there is a ring, the beginning of a block header at the end of the file is a write in progress, and so is an incomplete line
    /// among the first lines of the newest segment.
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
        self.add_part(range.start..end, false);
    }

    fn complete(&mut self, segment: usize, body: Range<usize>, header: &BlockHeader) {
        let (bytes, positions) = (self.bytes(segment), header.positions());
        let within = |wanted: &Range<u64>| within(bytes, &body, header.from, wanted);
        let beyond = |from: u64| within(&(header.from.max(from)..positions.end));
        self.extend_run(segment, header);
        let head = self.ring_ends.get(&header.stream()).copied();
        if let Some(head) = head.filter(|head| *head < positions.end) {
            self.result.beyond_ring |= header.slot == 0;
            self.ended.add_lines(&bytes[beyond(head)]);
        }
        let ring = self.recording.ring.as_ref().filter(|_| header.slot == 0);
        let losses_read_at = ring.map(|(ring, _)| ring.losses_read_at);
        if let Some(losses_read_at) =
            losses_read_at.filter(|losses_read_at| *losses_read_at < positions.end)
        {
            self.reported.add_records(&bytes[beyond(losses_read_at)]);
        }
        let stream = self.streams.entry(header.stream()).or_default();
        stream.expected = stream.expected.max(positions.end);
        for fresh in stream.covered.add(positions.clone()) {
            self.add_part(within(&fresh), true);
        }
    }

    /// Extends the range of positions of the run of segments that a block belongs to.
    fn extend_run(&mut self, segment: usize, header: &BlockHeader) {
        if self.recording.left_out.is_empty() {
            return;
        }
        let positions = header.positions();
        let runs = &mut self.streams.entry(header.stream()).or_default().runs;
        let run = runs
            .entry(self.left_out_before[segment])
            .or_insert(positions.clone());
        *run = run.start.min(positions.start)..run.end.max(positions.end);
    }

    /// Marks positions as covered that may be in the segments that are left out: those between the blocks before and after them, and those before the
    /// oldest one in the ring.
    fn cover_left_out(&mut self) {
        if self.recording.left_out.is_empty() {
            return;
        }
        let ring = self.recording.ring.iter().flat_map(|(ring, _)| &ring.slots);
        for slot in ring {
            let runs = &mut self.streams.entry(slot.stream()).or_default().runs;
            runs.entry(self.recording.left_out.len())
                .or_insert(slot.from..slot.from);
        }
        for stream in self.streams.values_mut() {
            let (mut gaps, mut end) = (0, 0);
            for (number, run) in &stream.runs {
                if *number > gaps {
                    stream.covered.add(end..run.start);
                }
                (gaps, end) = (*number, end.max(run.end));
            }
        }
    }

    fn ring(&mut self) {
        let Some((ring, _)) = &self.recording.ring else {
            return;
        };
        for (index, slot) in ring.slots.iter().enumerate() {
            let stream = self.streams.entry(slot.stream()).or_default();
            stream.expected = stream.expected.max(slot.head);
            let removed_to = self.recording.removed_to(slot.stream());
            stream.covered.add(0..removed_to);
            let fresh = stream.covered.add(slot.from..slot.head);
            let parts = fresh
                .iter()
                .map(|fresh| Part::from_range(within_slot(slot, fresh), false));
            let parts: Vec<Part> = parts.collect();
            if !parts.is_empty() {
                self.result.tail.push((index, parts));
            }
        }
        let header = self.recording.header();
        let pid = header.map_or(ring.pid, |header| header.pid);
        let first = ring.slots.iter().find(|slot| slot.slot == 0);
        if let Some(first) = first.filter(|first| ring.losses_read_at < first.head) {
            let beyond = ring.losses_read_at.max(first.from)..first.head;
            self.reported
                .add_records(&first.bytes[within_slot(first, &beyond)]);
        }
        let lost = ring
            .losses
            .iter()
            .filter(|loss| !self.reported.contains(loss));
        self.result.loss_lines = lost.flat_map(|loss| loss.line()).collect();
        let outlived = self.recording.has_outlived_ring();
        let is_open = |span: &OpenSpan| !outlived && !self.ended.contains(span);
        let threads = ring.slots.iter().flat_map(|slot| &slot.open);
        let lanes = shown_lanes(ring.lanes.iter().filter(|lane| is_open(&lane.span)));
        let open = threads.filter(|span| is_open(span)).chain(&lanes);
        self.result.open_lines = open_lines(pid, open);
    }

    /// Keeps the content of a broken block line by line: events whose positions nothing else contains, and damage where it is. In the last block of a
    /// file, everything after the end of the ring's copy is a write in progress and does not count.
    fn broken(&mut self, segment: usize, body: Range<usize>, header: &BlockHeader) {
        let bytes = self.bytes(segment);
        let key = header.stream();
        let is_last = body.end == bytes.len();
        let bound = is_last
            .then(|| self.copied_to(key))
            .flatten()
            .unwrap_or(u64::MAX);
        let stream = self.streams.entry(key).or_default();
        let Some((claimed, ranges)) = stream.broken(bytes, &body, header, bound) else {
            return;
        };
        stream.claimed.push(claimed.clone());
        let parts = ranges
            .into_iter()
            .map(|range| Part::from_range(range, false));
        self.result.segments[segment].broken.extend(parts);
        let place = (segment, line_start(bytes, body.start - 1, 0) as u64);
        self.result.bad_blocks.push(Gap {
            stream: key,
            range: claimed,
            place,
            before: None,
            after: None,
        });
    }

    /// Returns the position up to which the ring's copy contains a stream; 0 if the stream began after the ring was copied.
    fn copied_to(&self, (slot, generation): StreamKey) -> Option<u64> {
        let mut copies = self.ring_ends.range((slot, 0)..=(slot, u32::MAX));
        let is_later = match copies.next_back() {
            Some((copy, head)) if copy.1 == generation => return Some(*head),
            Some((copy, _)) => copy.1 < generation && !self.recording.was_dead,
            // If the process is gone, its slot may have been in memory only, or be damaged.
            None => self.recording.ring.is_some() && self.recording.is_alive(),
        };
        is_later.then_some(0)
    }

    /// Returns the positions that nothing covers and no incomplete block claims.
    fn missing(&mut self) -> Missing {
        let mut missing = Missing::default();
        for (key, stream) in &mut self.streams {
            for claimed in std::mem::take(&mut stream.claimed) {
                stream.covered.add(claimed);
            }
            missing.add(*key, stream.covered.missing(0..stream.expected));
        }
        missing
    }

    fn finish(mut self, missing: Missing) -> Assembly {
        for segment in &mut self.result.segments {
            segment.broken.shrink_to_fit();
        }
        let last = self.recording.fragments.len().saturating_sub(1);
        for (stream, hole) in missing.into_holes() {
            let place = |edge: Edge| edge.1;
            let after = hole.after.map(place);
            // A record that explains a gap comes after the gap.
            let segment = after.map(|(segment, _)| segment);
            if segment.is_some_and(|segment| self.recording.may_be_explained_elsewhere(segment)) {
                continue;
            }
            let (segment, at) = after.unwrap_or_else(|| (last, self.bytes(last).len()));
            self.result.gaps.push(Gap {
                stream,
                before: hole.before.map(place),
                after,
                range: hole.range,
                place: (segment, at as u64),
            });
        }
        self.result
    }
}

/// Returns for each segment the number of places before it where segments are left out.
fn left_out_before(recording: &Recording) -> Vec<usize> {
    let segments = 0..recording.fragments.len();
    let left_out = &recording.left_out;
    let before = |segment| left_out.partition_point(|place| place.before <= segment);
    segments.map(before).collect()
}

/// Returns the byte range of the whole lines of a slot at the `wanted` positions.
fn within_slot(slot: &Slot, wanted: &Range<u64>) -> Range<usize> {
    within(&slot.bytes, &(0..slot.bytes.len()), slot.from, wanted)
}

/// Returns the byte range of the whole lines of a block at the `wanted` positions.
fn within(bytes: &[u8], body: &Range<usize>, from: u64, wanted: &Range<u64>) -> Range<usize> {
    let place = |position: u64| {
        body.start + usize::try_from(position - from).unwrap_or(usize::MAX - body.start)
    };
    let [mut start, mut end] = [wanted.start, wanted.end].map(|at| place(at).min(body.end));
    if start > body.start && bytes[start - 1] != b'\n' {
        start =
            memchr::memchr(b'\n', &bytes[start..body.end]).map_or(body.end, |at| start + at + 1);
    }
    if end < body.end {
        end = line_start(bytes, end, body.start);
    }
    start..end.max(start)
}
