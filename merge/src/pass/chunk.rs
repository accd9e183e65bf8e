//! What may be merged, shared out in chunks, and the first pass over them.

use crate::align::Curve;
use crate::base::progress::Progress;
use crate::event::edges::{Edges, Lies};
use crate::event::era::Era;
use crate::event::event_mask::Shown;
use crate::event::line::Event;
use crate::event::scan::{Found, PART_BYTES, Part, cut, rescan_part, scan_part};
use crate::fragment::assembly::Assembly;
use crate::fragment::recording::Recording;
use crate::fragment::ring::Slot;
use crate::link::Collector;
use crate::pass::history::Histories;
use crate::pass::summary::{Index, index_era, index_objects};
use crate::store::spill_vec::{Spill, Together};
use rayon::prelude::*;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that may be merged: of a fragment, a ring slot, or the spans that were open.
pub(crate) struct Source<'a> {
    pub(crate) recording: usize,
    /// Segment, `None` for what came from the ring.
    pub(crate) segment: Option<usize>,
    /// Slot of the ring, if these are its bytes.
    pub(crate) slot: Option<&'a Slot>,
    pub(crate) path: &'a Path,
    pub(crate) bytes: &'a [u8],
    /// Whether these are the lines of the spans that were open.
    is_of_open_spans: bool,
    parts: Parts<'a>,
    pub(crate) index: Index,
}

/// Which parts of a source count.
enum Parts<'a> {
    /// Those of a segment, which are many in a long run: a block each.
    Segment(&'a Assembly, usize),
    Few(Cow<'a, [Part]>),
}

impl<'a> Source<'a> {
    /// Lines that all count and stand in no segment.
    pub(crate) fn of_lines(recording: usize, path: &'a Path, lines: &'a [u8]) -> Source<'a> {
        let all = Parts::Few(vec![Part::all_of(lines)].into());
        source(recording, None, path, lines, all)
    }

    /// How many spans were open, if that is what these bytes say.
    fn open_spans(&self) -> Option<u64> {
        self.is_of_open_spans
            .then(|| memchr::memchr_iter(b'\n', self.bytes).count() as u64)
    }

    /// Where in the source's file the byte at `at` lies.
    pub(crate) fn file_offset(&self, at: u64) -> u64 {
        self.slot.map_or(at, |slot| slot.file_offset(at))
    }
}

/// Some threads of a recording: one bit for each of 64 kinds.
#[derive(Clone, Copy, Default)]
pub(crate) struct ThreadSet(u64);

impl ThreadSet {
    /// Whether both may hold the same thread.
    pub(crate) fn meets(self, other: ThreadSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<(i64, i64)> for ThreadSet {
    fn from_iter<T: IntoIterator<Item = (i64, i64)>>(threads: T) -> ThreadSet {
        let bits = threads.into_iter().map(|thread| 1 << kind(thread));
        ThreadSet(bits.fold(0, |set, bit| set | bit))
    }
}

/// Which of 64 kinds a thread is of.
#[inline(always)]
pub(crate) fn kind((pid, tid): (i64, i64)) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (tid ^ pid.rotate_left(32)).cast_unsigned();
    (mixed.wrapping_mul(SPREAD) >> 58) as usize
}

/// A few parts of one source: what a worker takes at a time.
pub(crate) struct Chunk {
    pub(crate) source: usize,
    pub(crate) parts: Together<Part>,
    pub(crate) events: u64,
    /// Whether the first pass found nothing but plain events, and no block header.
    pub(crate) plain: bool,
    /// Whether it found nothing but lines in canonical order that a checksum vouches for.
    pub(crate) canonical: bool,
    /// The threads that have events in it, and perhaps others.
    pub(crate) threads: ThreadSet,
    /// The begin of its first event and the end of its last one, and whether some are shown whatever their time.
    range_ns: Option<(i64, i64)>,
    timeless: bool,
    /// Whether begins or ends of spans are events of their own.
    pub(crate) halves: bool,
    /// Which of its events are shown.
    pub(crate) shown: Shown,
    /// What brings its times to the axis, if no shift does.
    warp: Option<Arc<Curve>>,
    /// When its events must have taken place, if some of its recording did not.
    pub(crate) era: Option<Era>,
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
            halves: false,
            shown: Shown::default(),
            warp: None,
            era: None,
        }
    }

    /// Parts of a source and what the first pass found in them.
    pub(crate) fn of(source: usize, parts: Vec<Part>, index: &Index) -> Chunk {
        let mut chunk = Chunk::new(source, parts.into());
        chunk.note(index);
        chunk
    }

    /// Notes what the first pass found in its parts.
    fn note(&mut self, index: &Index) {
        self.events = index.events();
        self.plain = !index.odd;
        self.canonical = index.canonical;
        self.threads = index.threads.keys().copied().collect();
        (self.range_ns, self.timeless) = (index.range_ns(), index.has_timeless());
        self.halves = index.has_halves();
    }

    /// Moves its times, and those of its events from now on.
    pub(crate) fn warp(&mut self, warp: &Arc<Curve>) {
        let range = self.range_ns;
        self.range_ns = range.map(|(first, last)| (warp.at(first), warp.at(last)));
        self.warp = Some(Arc::clone(warp));
    }

    /// Whether all its lines are in canonical order, are shown, and keep their times but for a shift.
    pub(crate) fn is_copied_alike(&self) -> bool {
        self.canonical && self.shown.is_all() && self.warp.is_none()
    }

    /// One of its events with the times it has now.
    #[inline]
    pub(crate) fn warped<'a>(&self, event: Event<'a>) -> Event<'a> {
        match &self.warp {
            Some(warp) if !event.is_metadata() => warped(event, warp),
            _ => event,
        }
    }

    /// Calls `found` with each of its events as it was recorded, those that are left out of the trace included.
    #[inline]
    pub(crate) fn recorded<'a>(&self, bytes: &'a [u8], mut found: impl FnMut(Event<'a>)) {
        for part in self.parts.iter() {
            if self.plain && !part.trusted {
                rescan_part(bytes, *part, &mut found);
                continue;
            }
            scan_part(bytes, *part, |_, line| {
                if let Found::Event(event) = line
                    && self.era.is_none_or(|era| era.holds_event(&event))
                {
                    found(event);
                }
            });
        }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        let lens = self.parts.iter().map(|part| part.end - part.start);
        lens.sum::<usize>() as u64
    }

    /// From when to when it has events, in the recording's own time, or on the axis if they are warped.
    pub(crate) fn times_ns(&self) -> Option<(i64, i64)> {
        self.range_ns
    }

    /// Calls `found` with each of its events, and the number of each, which counts those that are not shown, and whether it is.
    #[inline]
    pub(crate) fn each<'a>(&self, bytes: &'a [u8], mut found: impl FnMut(u32, Lies, &Event<'a>)) {
        let (mut shown, mut nth) = (self.shown.reader(), 0);
        self.recorded(bytes, |event| {
            let event = self.warped(event);
            let lies = shown.next(&event);
            found(nth, lies, &event);
            nth += 1;
        });
    }

    /// Narrows it to the window; one that has nothing in it has no parts left, unless the other half of a span in it may be elsewhere.
    pub(crate) fn narrow(&mut self, edges: Edges) {
        let is_outside =
            |(first_ns, last_ns): (i64, i64)| last_ns < edges.from_ns || first_ns > edges.to_ns;
        self.shown.edges = (!(self.range_ns.is_some() && self.is_within(edges))).then_some(edges);
        if !self.timeless && !self.halves && self.range_ns.is_none_or(is_outside) {
            self.parts.clear();
        }
    }

    /// Whether any of its events may be within these edges.
    pub(crate) fn reaches(&self, edges: Edges) -> bool {
        let is_within =
            |(first_ns, last_ns): (i64, i64)| last_ns >= edges.from_ns && first_ns <= edges.to_ns;
        !self.parts.is_empty() && (self.timeless || self.range_ns.is_some_and(is_within))
    }

    /// Whether all of its events are within these edges.
    pub(crate) fn is_within(&self, edges: Edges) -> bool {
        let is_within =
            |(first_ns, last_ns): (i64, i64)| first_ns >= edges.from_ns && last_ns <= edges.to_ns;
        self.range_ns.is_none_or(is_within)
    }

    /// The begin of its first event and the end of its last one, in the recording's own time; `None` if nothing is read of it or nothing has a time.
    pub(crate) fn range_ns(&self) -> Option<(i64, i64)> {
        self.range_ns.filter(|_| !self.parts.is_empty())
    }
}

/// An event whose times, and so its duration, are other ones than its line says.
fn warped<'a>(event: Event<'a>, warp: &Curve) -> Event<'a> {
    let ts_ns = warp.at(event.ts_ns);
    let end_ns = warp.at(event.ts_ns.saturating_add(event.dur_ns));
    Event {
        ts_ns,
        dur_ns: end_ns.saturating_sub(ts_ns),
        rounds_dur: event.rounds_dur || event.phase == b'X' && event.fields.dur.is_some(),
        ..event
    }
}

pub(crate) fn sources<'a>(
    recordings: &'a [Recording],
    assemblies: &'a [Assembly],
) -> Vec<Source<'a>> {
    let mut sources = Vec::new();
    for (recording, (of, assembly)) in recordings.iter().zip(assemblies).enumerate() {
        for (segment, fragment) in of.fragments.iter().enumerate() {
            let (path, bytes) = (fragment.path.as_path(), fragment.content.bytes());
            let parts = Parts::Segment(assembly, segment);
            sources.push(source(recording, Some(segment), path, bytes, parts));
        }
        let (Some((ring, _)), Some(place)) = (&of.ring, &of.ring_place) else {
            continue;
        };
        let path = place.path();
        for (slot, parts) in &assembly.tail {
            let slot = &ring.slots[*slot];
            let parts = Parts::Few(parts.into());
            let tail = source(recording, None, path, &slot.bytes, parts);
            sources.push(Source {
                slot: Some(slot),
                ..tail
            });
        }
        sources.push(Source::of_lines(recording, path, &assembly.loss_lines));
        sources.push(Source {
            is_of_open_spans: true,
            ..Source::of_lines(recording, path, &assembly.open_lines)
        });
    }
    sources
}

fn source<'a>(
    recording: usize,
    segment: Option<usize>,
    path: &'a Path,
    bytes: &'a [u8],
    parts: Parts<'a>,
) -> Source<'a> {
    Source {
        recording,
        segment,
        slot: None,
        path,
        bytes,
        is_of_open_spans: false,
        parts,
        index: Index::default(),
    }
}

/// Shares the parts out in portions of about [`PART_BYTES`]. Where they are goes to one of the `folders` if it is much.
pub(crate) fn chunks(sources: &[Source<'_>], folders: &[PathBuf]) -> io::Result<Vec<Chunk>> {
    let mut shares = Shares {
        spill: Spill::new(folders),
        done: Vec::new(),
        parts: Vec::new(),
    };
    for (number, source) in sources.iter().enumerate() {
        match &source.parts {
            Parts::Segment(assembly, segment) => {
                shares.add(number, source.bytes, assembly.parts(*segment));
            }
            Parts::Few(parts) => shares.add(number, source.bytes, parts.iter().copied()),
        }
    }
    let parts = Arc::new(shares.spill.finish()?);
    let chunk = |(source, numbers)| Chunk::new(source, Together::new(&parts, numbers));
    Ok(shares.done.into_iter().map(chunk).collect())
}

/// What is shared out.
struct Shares<'f> {
    spill: Spill<'f, Part>,
    /// Source and parts of each chunk.
    done: Vec<(usize, Range<usize>)>,
    /// Those of the next one.
    parts: Vec<Part>,
}

impl Shares<'_> {
    fn add(&mut self, source: usize, bytes: &[u8], parts: impl Iterator<Item = Part>) {
        let (mut filled, mut few) = (0, Vec::new());
        for part in parts {
            cut(bytes, part, PART_BYTES, &mut few);
            for part in few.drain(..) {
                if filled >= PART_BYTES {
                    self.close(source);
                    filled = 0;
                }
                filled += part.end - part.start;
                self.parts.push(part);
            }
        }
        self.close(source);
    }

    fn close(&mut self, source: usize) {
        if !self.parts.is_empty() {
            let numbers = self.spill.append(&self.parts);
            self.done.push((source, numbers));
            self.parts.clear();
        }
    }
}

/// The first pass; `objects` tells whether those that are no events count as well, and then nobody asks whether spans nest. `links` takes the
/// requests of the events.
///
/// It goes in windows of some chunks, so that what each holds is put together and forgotten long before the last one is read.
pub(crate) fn index(
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
    objects: bool,
    links: Option<&Collector<'_>>,
    progress: &Progress,
) -> Histories {
    let mut histories = Histories::default();
    let window = window_of_chunks();
    for (number, chunks) in chunks.chunks_mut(window).enumerate() {
        let indexes: Vec<Index> = {
            let sources = &*sources;
            let of_chunk = |chunk: &Chunk| {
                let source = &sources[chunk.source];
                let gather = links.map(|links| links.gather(chunk, source));
                let index = match objects {
                    true => index_objects(source.bytes, &chunk.parts),
                    false => index_era(source.bytes, &chunk.parts, gather, chunk.era),
                };
                progress.add(chunk.len(), index.events());
                index
            };
            chunks.par_iter().map(of_chunk).collect()
        };
        for ((chunk, mut index), place) in chunks.iter_mut().zip(indexes).zip(number * window..) {
            chunk.note(&index);
            let source = &mut sources[chunk.source];
            histories.append(source.recording, place, std::mem::take(&mut index.nestings));
            source.index.append(index);
        }
    }
    histories
}

/// Chunks that are worked on before what they hold is put together: a few for each worker, as far as memory goes.
pub(crate) fn window_of_chunks() -> usize {
    (4 * rayon::current_num_threads()).clamp(16, 64)
}

/// What all sources of each recording hold. Their anchors are moved there: nobody asks a source for them.
pub(crate) fn by_recording(recordings: &[Recording], sources: &mut [Source<'_>]) -> Vec<Index> {
    let mut indexes = vec![Index::default(); recordings.len()];
    for source in sources {
        let anchors = std::mem::take(&mut source.index.anchors);
        let index = Index {
            anchors,
            ..source.index.clone()
        };
        let open = source.open_spans();
        let all = &mut indexes[source.recording];
        all.append(index);
        all.open = all.open.or(open.filter(|_| !all.ended));
    }
    indexes
}
