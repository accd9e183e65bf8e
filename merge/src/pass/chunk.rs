//! Divides the bytes to merge into chunks. A chunk is a few parts (byte ranges) of one source: the
//! amount that a thread reads at once.

use crate::align::Curve;
use crate::event::edges::{Edges, Relation};
use crate::event::era::Era;
use crate::event::event_mask::Shown;
use crate::event::line::Event;
use crate::event::scan::{Found, PART_BYTES, Part, cut, rescan_part, scan_part};
use crate::pass::source::{Source, SourceParts};
use crate::store::sorter::Record;
use crate::store::spill_vec::{Spill, Together};
use crate::summary::chunk_summary::{ChunkSummary, ThreadSet};
use sa_format::Phase;
use std::io;
use std::iter::Peekable;
use std::ops::Range;
use std::path::PathBuf;
use std::slice::Iter;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// An event, identified by its chunk and its number among the chunk's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventRef {
    pub(crate) chunk: u32,
    pub(crate) nth: u32,
}

/// A few parts of one source: the unit of work for a thread.
pub(crate) struct Chunk {
    pub(crate) source: usize,
    pub(crate) parts: Together<Part>,
    pub(crate) events: u64,
    /// True if the first pass found only plain events, and no block header.
    pub(crate) plain: bool,
    /// True if the first pass found only lines in canonical order that are covered by a checksum.
    pub(crate) canonical: bool,
    /// Threads with events in this chunk. May include others.
    pub(crate) threads: ThreadSet,
    /// Begin of the first event and end of the last one.
    range_ns: Option<(i64, i64)>,
    timeless: bool,
    /// True if begins or ends of spans are events of their own here.
    pub(crate) has_begins_or_ends: bool,
    /// Events of this chunk that are shown.
    pub(crate) shown: Shown,
    /// Curve that maps its times to the axis. `None` if a shift is enough.
    warp: Option<Arc<Curve>>,
    /// Period in which its events must have happened. Set if some events of its recording are
    /// outside of it.
    pub(crate) era: Option<Era>,
    /// Hash of the lines outside of verified blocks, from the first pass; `None` if the first pass did not read this chunk.
    pub(super) unverified_hash: Option<u64>,
}

impl Chunk {
    fn new(source: usize, parts: Together<Part>) -> Chunk {
        Chunk {
            source,
            parts,
            events: 0,
            plain: false,
            canonical: false,
            threads: ThreadSet::default(),
            range_ns: None,
            timeless: false,
            has_begins_or_ends: false,
            shown: Shown::default(),
            warp: None,
            era: None,
            unverified_hash: None,
        }
    }

    /// Returns true if the lines outside of blocks have changed since the first pass.
    pub(crate) fn has_changed(&self, bytes: &[u8]) -> bool {
        let sum = self.unverified_hash.filter(|_| !self.parts.is_empty());
        sum.is_some_and(|sum| sum != unverified_hash(bytes, &self.parts))
    }

    /// Creates a chunk with the results of the first pass for `parts`.
    pub(crate) fn from_summary(source: usize, parts: Vec<Part>, summary: &ChunkSummary) -> Chunk {
        let mut chunk = Chunk::new(source, parts.into());
        chunk.set_summary(summary);
        chunk
    }

    /// Stores the results of the first pass.
    pub(super) fn set_summary(&mut self, summary: &ChunkSummary) {
        self.events = summary.events();
        self.plain = !summary.odd;
        self.canonical = summary.canonical;
        self.threads = summary.threads.keys().copied().collect();
        (self.range_ns, self.timeless) = (summary.range_ns(), summary.has_timeless());
        self.has_begins_or_ends = summary.has_begins_or_ends();
    }

    /// Maps the chunk's time range by `warp`, and the times of its events from now on.
    pub(crate) fn warp(&mut self, warp: &Arc<Curve>) {
        let range = self.range_ns;
        self.range_ns = range.map(|(first, last)| (warp.at(first), warp.at(last)));
        self.warp = Some(Arc::clone(warp));
    }

    /// Returns true if all its lines are in canonical order and shown, and their times need only a
    /// shift.
    pub(crate) fn needs_only_shift(&self) -> bool {
        self.canonical && self.shown.is_all() && self.warp.is_none()
    }

    /// Returns `event`, an event of this chunk, with its current times.
    #[inline]
    pub(crate) fn warped<'a>(&self, event: Event<'a>) -> Event<'a> {
        match &self.warp {
            Some(warp) if !event.is_metadata() => warped(event, warp),
            _ => event,
        }
    }

    /// Calls `on_event` with each event as it was recorded, including events that are left out of
    /// the trace.
    #[inline]
    pub(crate) fn for_each_recorded<'a>(
        &self,
        bytes: &'a [u8],
        mut on_event: impl FnMut(Event<'a>),
    ) {
        for part in self.parts.iter() {
            if self.plain && !part.trusted {
                rescan_part(bytes, *part, &mut on_event);
                continue;
            }
            scan_part(bytes, *part, |_, line| {
                if let Found::Event(event) = line
                    && self.era.is_none_or(|era| era.holds_event(&event))
                {
                    on_event(event);
                }
            });
        }
    }

    /// Returns the total length of the chunk's parts in bytes.
    pub(crate) fn len(&self) -> u64 {
        let lens = self.parts.iter().map(|part| part.end - part.start);
        lens.sum::<usize>() as u64
    }

    /// Returns the time range of its events, even if no parts are left. The times are the
    /// recording's own, or on the axis once they are warped.
    pub(crate) fn recorded_range_ns(&self) -> Option<(i64, i64)> {
        self.range_ns
    }

    /// Calls `on_event` with each event, its number and its relation to the window. The number
    /// counts events that are not shown as well.
    #[inline]
    pub(crate) fn for_each_event<'a>(
        &self,
        bytes: &'a [u8],
        mut on_event: impl FnMut(u32, Relation, &Event<'a>),
    ) {
        let mut nth = 0;
        self.for_each_recorded(bytes, |event| {
            let event = self.warped(event);
            let relation = self.shown.relation(nth as usize, &event);
            on_event(nth, relation, &event);
            nth += 1;
        });
    }

    /// Cuts an event that crosses an edge of the window. Returns `None` for any other event.
    #[inline]
    pub(crate) fn cut<'a>(&self, event: &Event<'a>) -> Option<Event<'a>> {
        self.shown.edges.and_then(|edges| edges.cut(event))
    }

    /// Returns the begin of the shown part of a complete event that begins at `ts_ns`.
    #[inline]
    pub(crate) fn shown_start_ns(&self, ts_ns: i64) -> i64 {
        let from_ns = self.shown.edges.map_or(i64::MIN, |edges| edges.from_ns);
        ts_ns.max(from_ns)
    }

    /// Restricts the chunk to the window. Removes all parts if none of its events is inside, unless
    /// it contains a begin or end whose counterpart may be in another chunk.
    pub(crate) fn narrow(&mut self, edges: Edges) {
        self.shown.edges = (!(self.range_ns.is_some() && self.is_within(edges))).then_some(edges);
        if !self.has_begins_or_ends && !self.overlaps(edges) {
            self.parts.clear();
        }
    }

    /// Returns true if any of its events may be within these edges.
    pub(crate) fn overlaps(&self, edges: Edges) -> bool {
        let is_within =
            |(first_ns, last_ns): (i64, i64)| last_ns >= edges.from_ns && first_ns <= edges.to_ns;
        !self.parts.is_empty() && (self.timeless || self.range_ns.is_some_and(is_within))
    }

    /// Returns true if all of its events are within these edges.
    pub(crate) fn is_within(&self, edges: Edges) -> bool {
        let is_within =
            |(first_ns, last_ns): (i64, i64)| first_ns >= edges.from_ns && last_ns <= edges.to_ns;
        self.range_ns.is_none_or(is_within)
    }

    /// Returns [`Chunk::range_ns`], restricted to the window.
    pub(crate) fn shown_range_ns(&self) -> Option<(i64, i64)> {
        let (first_ns, last_ns) = self.range_ns()?;
        let edges = self.shown.edges.unwrap_or(Edges::OPEN);
        // A begin may be 1 ns before the window.
        let from_ns = edges.from_ns.saturating_sub(1);
        let clamp = |ns: i64| ns.max(from_ns).min(edges.to_ns);
        Some((clamp(first_ns), clamp(last_ns)))
    }

    /// Returns the begin of the first event and the end of the last one, in the recording's own
    /// time. Returns `None` if no part of the chunk is read, or if no event has a time.
    pub(crate) fn range_ns(&self) -> Option<(i64, i64)> {
        self.range_ns.filter(|_| !self.parts.is_empty())
    }
}

/// Returns a hash of the parts outside of verified blocks.
pub(super) fn unverified_hash(bytes: &[u8], parts: &[Part]) -> u64 {
    let unproven = parts.iter().filter(|part| !part.trusted);
    unproven.fold(0, |sum, part| {
        sum.rotate_left(1) ^ xxh3_64_with_seed(&bytes[part.start..part.end], sum)
    })
}

/// Maps the begin and the end of an event by `warp`. Its duration can change.
fn warped<'a>(event: Event<'a>, warp: &Curve) -> Event<'a> {
    let ts_ns = warp.at(event.ts_ns);
    let end_ns = warp.at(event.ts_ns.saturating_add(event.dur_ns));
    Event {
        ts_ns,
        dur_ns: end_ns.saturating_sub(ts_ns),
        rounds_dur: event.rounds_dur
            || event.phase == Phase::Complete && event.fields.dur.is_some(),
        ..event
    }
}

/// Divides the parts of all sources into chunks of about [`PART_BYTES`]. If there are many parts,
/// their positions go to a file in one of the `folders`.
pub(crate) fn chunks(sources: &[Source<'_>], folders: &[PathBuf]) -> io::Result<Vec<Chunk>> {
    let mut builder = ChunkBuilder {
        spill: Spill::new(folders),
        chunks: Vec::new(),
        parts: Vec::new(),
    };
    for (number, source) in sources.iter().enumerate() {
        match &source.parts {
            SourceParts::Segment(assembly, segment) => {
                builder.add(number, source.bytes, assembly.parts(*segment));
            }
            SourceParts::Few(parts) => builder.add(number, source.bytes, parts.iter().copied()),
        }
    }
    let parts = Arc::new(builder.spill.finish()?);
    let chunk = |(source, numbers)| Chunk::new(source, Together::new(&parts, numbers));
    Ok(builder.chunks.into_iter().map(chunk).collect())
}

/// Chunks that are being built.
struct ChunkBuilder<'f> {
    spill: Spill<'f, Part>,
    /// Source and parts of each chunk.
    chunks: Vec<(usize, Range<usize>)>,
    /// Parts of the next chunk.
    parts: Vec<Part>,
}

impl ChunkBuilder<'_> {
    fn add(&mut self, source: usize, bytes: &[u8], parts: impl Iterator<Item = Part>) {
        let (mut filled, mut pieces) = (0, Vec::new());
        for part in parts {
            cut(bytes, part, PART_BYTES, &mut pieces);
            for part in pieces.drain(..) {
                if filled >= PART_BYTES {
                    self.finish_chunk(source);
                    filled = 0;
                }
                filled += part.end - part.start;
                self.parts.push(part);
            }
        }
        self.finish_chunk(source);
    }

    fn finish_chunk(&mut self, source: usize) {
        if !self.parts.is_empty() {
            let numbers = self.spill.append(&self.parts);
            self.chunks.push((source, numbers));
            self.parts.clear();
        }
    }
}

/// A record about one event. Records are ordered by their event first.
pub(crate) trait EventRecord: Record {
    /// Returns the event that the record is about.
    fn event(&self) -> EventRef;
}

/// Returns the record of one event from sorted records.
pub(crate) fn find_record<R: EventRecord>(records: &[R], at: EventRef) -> Option<&R> {
    let found = records.binary_search_by(|record| record.event().cmp(&at));
    records.get(found.ok()?)
}

/// Iterator over a chunk's events that yields the record of each event that has one.
pub(crate) struct ChunkRecords<'a, R> {
    left: Peekable<Iter<'a, R>>,
    nth: u32,
}

impl<'a, R: EventRecord> ChunkRecords<'a, R> {
    /// Finds the records of one chunk in sorted records.
    pub(crate) fn new(records: &'a [R], number: usize) -> ChunkRecords<'a, R> {
        let is_before = |record: &R| (record.event().chunk as usize) < number;
        let from_chunk = &records[records.partition_point(is_before)..];
        let end = from_chunk.partition_point(|record| record.event().chunk as usize == number);
        ChunkRecords {
            left: from_chunk[..end].iter().peekable(),
            nth: 0,
        }
    }

    /// Returns true if no records are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.len() == 0
    }

    /// Moves on to the next event and returns its record, if it has one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a R> {
        let nth = self.nth;
        self.nth += 1;
        self.left.next_if(|next| next.event().nth == nth)
    }
}
