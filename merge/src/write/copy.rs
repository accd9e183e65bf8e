//! The second pass: copies every line and replaces only its times and ids.

use crate::app::report::Report;
use crate::base::progress::Progress;
use crate::base::time_cache::Stamp;
use crate::event::line::Event;
use crate::event::own_record::is_left_out;
use crate::event::scan::{Found, scan_part};
use crate::event::verbatim::{object, write_verbatim};
use crate::fragment::recording::Recording;
use crate::identity::plan::Plan;
use crate::identity::row_order::metadata_lines;
use crate::lanes::moves::Overflow;
use crate::link::{Links, Lookup};
use crate::pass::chunk::{Chunk, Source};
use crate::write::sink::{Scratch, Sink, document_head, document_tail};
use crate::write::split::Portion;
use crate::write::timeline::{Scribe, Timeline};
use crate::write::writer::Writer;
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Builder;

/// The second pass.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) recordings: &'a [Recording],
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
    pub(crate) plan: &'a Plan,
    pub(crate) overflow: &'a Overflow,
    /// The requests to link, if any shall be.
    pub(crate) links: Option<&'a Links>,
    pub(crate) progress: &'a Progress,
    /// Whether the lines are copied as they stand.
    pub(crate) verbatim: bool,
    /// The order of the events, if they are sorted by time.
    pub(crate) timeline: Option<&'a Timeline<'a>>,
    /// The part of the trace that is written, if it is split.
    pub(crate) portion: Option<&'a Portion<'a>>,
}

/// A line of the trace.
pub(crate) struct Written {
    /// Its begin, and its end if it has one, in ns from the trace's base; `None` for metadata.
    pub(crate) range_ns: Option<(i64, Option<i64>)>,
    /// Its length, with what stands between it and the one before.
    pub(crate) bytes: usize,
}

/// The chunks to copy, or the pieces of all events in the order of time, and where they go.
struct Work<'a> {
    wanted: &'a [usize],
    /// The one with the first event, which follows no other.
    first: Option<usize>,
    next: AtomicUsize,
    sink: &'a Sink,
}

impl<'a> Job<'a> {
    /// Hands the whole trace, or its part, to the sink, which keeps the first error. Gives the number of flow events that link requests.
    pub(crate) fn run(&self, sink: &Sink, threads: usize, report: &Report) -> u64 {
        let mut scratch = Scratch::default();
        scratch.text = self.head(report);
        if !sink.put(0, &mut scratch, false) {
            return 0;
        }
        let wanted = self.wanted();
        let first = match self.first(&wanted) {
            Ok(first) => first,
            Err(failure) => {
                sink.fail(failure);
                return 0;
            }
        };
        let work = Work {
            wanted: &wanted,
            first,
            next: AtomicUsize::new(0),
            sink,
        };
        let linked = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(wanted.len()) {
                let work = || linked.fetch_add(self.work(&work), Ordering::Relaxed);
                if Builder::new().spawn_scoped(scope, work).is_err() {
                    // No thread is left: this one and those that there are do all.
                    work();
                    return;
                }
            }
        });
        scratch.text = self.tail();
        sink.put(wanted.len() + 1, &mut scratch, true);
        linked.into_inner()
    }

    /// What stands before the events.
    pub(crate) fn head(&self, report: &Report) -> Vec<u8> {
        let mut data = other_data(report);
        if let Some(portion) = self.portion {
            data["part"] = portion.other_data();
        }
        document_head(&data)
    }

    /// What stands behind them.
    pub(crate) fn tail(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let added = (!self.verbatim).then(|| metadata_lines(&self.plan.identities.processes));
        for line in added.unwrap_or_default() {
            text.extend_from_slice(b",\n");
            text.extend_from_slice(line.as_bytes());
        }
        text.extend_from_slice(document_tail());
        text
    }

    /// The numbers of the chunks that may have anything to show, or of the pieces of the sorted events.
    pub(crate) fn wanted(&self) -> Vec<usize> {
        let is_wanted = |number: &usize| {
            let chunk = &self.chunks[*number];
            let recording = self.sources[chunk.source].recording;
            let reaches = |portion: &Portion<'_>| portion.view(recording, *number).reaches(chunk);
            self.portion.is_none_or(reaches)
        };
        match self.timeline {
            Some(timeline) => (0..timeline.pieces()).collect(),
            None => (0..self.chunks.len()).filter(is_wanted).collect(),
        }
    }

    /// The first chunk that shows anything.
    fn first(&self, wanted: &[usize]) -> io::Result<Option<usize>> {
        if self.timeline.is_some() {
            return Ok(wanted.first().copied());
        }
        let mut text = Vec::new();
        for number in wanted {
            let shows_any = match self.portion {
                Some(_) => {
                    self.copy(*number, None, &mut text)?;
                    !text.is_empty()
                }
                None => self.chunks[*number].events > 0,
            };
            if shows_any {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }

    /// Takes chunks until there are none left, or the trace cannot be written. Gives the number of flow events that link requests.
    fn work(&self, work: &Work<'_>) -> u64 {
        let mut lookup = self.links.and_then(Links::lookup);
        if let Some(timeline) = self.timeline {
            let mut scribe = Scribe::new(self, timeline, lookup.as_mut());
            self.take_chunks(work, |piece, out| scribe.piece(piece, out));
        } else {
            self.take_chunks(work, |chunk, out| {
                self.copy_one(chunk, lookup.as_mut(), out)
            });
        }
        lookup.map_or(0, |lookup| lookup.written)
    }

    /// Takes chunks, or pieces, of which `copy` writes each and gives how many bytes of the inputs that was.
    fn take_chunks(
        &self,
        work: &Work<'_>,
        mut copy: impl FnMut(usize, &mut Vec<u8>) -> io::Result<u64>,
    ) {
        let mut scratch = Scratch::default();
        loop {
            let turn = work.next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = work.wanted.get(turn).copied() else {
                return;
            };
            scratch.text.clear();
            let done = match copy(number, &mut scratch.text) {
                Ok(done) => done,
                Err(failure) => {
                    work.sink.fail(failure);
                    return;
                }
            };
            // It has lost all its events where its file was cut short meanwhile; then all is merged once more.
            if work.first == Some(number) && !scratch.text.is_empty() {
                scratch.text.remove(0);
            }
            if !work.sink.put(turn + 1, &mut scratch, false) {
                return;
            }
            self.progress.add(done, 0);
        }
    }

    /// Writes what is wanted to `out`; gives how many bytes of the inputs that was.
    fn copy_one(
        &self,
        number: usize,
        lookup: Option<&mut Lookup<'a>>,
        out: &mut Vec<u8>,
    ) -> io::Result<u64> {
        let chunk = &self.chunks[number];
        if self.verbatim {
            self.copy_verbatim(chunk, out);
        } else {
            self.copy(number, lookup, out)?;
        }
        self.release(chunk);
        Ok(chunk.len())
    }

    fn copy(
        &self,
        number: usize,
        lookup: Option<&mut Lookup<'a>>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let chunk = &self.chunks[number];
        let source = &self.sources[chunk.source];
        let mut writer = self.writer(number, lookup, out)?;
        let view = self
            .portion
            .map(|portion| portion.view(source.recording, number));
        let partial = view.and_then(|mut view| (!view.holds(chunk)).then_some(view));
        if let Some(mut view) = partial {
            chunk.each(source.bytes, |nth, lies, event| {
                // A span may be in several parts; the flow events at its begin are in one, as all flow events are.
                let links = view.has_begin(event);
                writer.event_with(event, view.lies(nth, lies, event), links);
            });
        } else if chunk.is_copied_alike() && writer.moved.is_empty() {
            for part in chunk.parts.iter() {
                writer.canonical(source.bytes, *part);
            }
        } else {
            chunk.each(source.bytes, |_, lies, event| writer.event(event, lies));
        }
        Ok(())
    }

    /// Writes the lines of a chunk to `out`, and tells `note` of each.
    pub(crate) fn measure(
        &self,
        number: usize,
        out: &mut Vec<u8>,
        mut note: impl FnMut(Written),
    ) -> io::Result<()> {
        let chunk = &self.chunks[number];
        let source = &self.sources[chunk.source];
        let mut lookup = self.links.and_then(Links::lookup);
        let mut writer = self.writer(number, lookup.as_mut(), out)?;
        chunk.each(source.bytes, |_, lies, event| {
            let start = writer.out.len();
            writer.event(event, lies);
            let bytes = writer.out.len() - start;
            if bytes > 0 {
                note(Written::of(event, writer.shift_ns, bytes));
            }
        });
        Ok(())
    }

    fn writer<'l, 'o>(
        &self,
        number: usize,
        lookup: Option<&'l mut Lookup<'a>>,
        out: &'o mut Vec<u8>,
    ) -> io::Result<Writer<'a, 'l, 'o>> {
        let chunk: &'a Chunk = &self.chunks[number];
        let source = &self.sources[chunk.source];
        let shift_ns = self.plan.shifts_ns[source.recording];
        let links = self.links.zip(lookup);
        let linker = |(links, lookup): (&Links, _)| links.linker(lookup, (chunk, shift_ns), source);
        Ok(Writer {
            targets: &self.plan.targets[source.recording],
            shift_ns,
            recent: [None; 64],
            stamp: Stamp::default(),
            moved: self.overflow.of_chunk(number)?,
            linker: links.and_then(linker),
            out,
        })
    }

    /// Times of the events of each chunk that is read, in ns from the trace's base.
    pub(crate) fn ranges_ns(&self) -> Vec<(i64, i64)> {
        let range = |chunk: &Chunk| {
            let shift_ns = self.plan.shifts_ns[self.sources[chunk.source].recording];
            let (first, last) = chunk.range_ns()?;
            Some((
                first.saturating_add(shift_ns),
                last.saturating_add(shift_ns),
            ))
        };
        self.chunks.iter().filter_map(range).collect()
    }

    fn copy_verbatim(&self, chunk: &Chunk, out: &mut Vec<u8>) {
        let source = &self.sources[chunk.source];
        let is_ours = self.recordings[source.recording].header().is_some();
        let targets = &self.plan.targets[source.recording];
        for part in chunk.parts.iter() {
            scan_part(source.bytes, *part, |at, found| match found {
                Found::Event(event) if is_left_out(&event) => {}
                Found::Event(event) => {
                    let target = targets.get(&(event.pid, event.tid)).filter(|_| is_ours);
                    out.extend_from_slice(b",\n");
                    write_verbatim(&event, target.map(|target| target.ordinal), out);
                }
                Found::Damage(kind) => {
                    if let Some(object) = object(source.bytes, *part, at, kind) {
                        out.extend_from_slice(b",\n");
                        out.extend_from_slice(&object);
                    }
                }
            });
        }
    }

    /// Lets go of the pages that were copied.
    fn release(&self, chunk: &Chunk) {
        let source = &self.sources[chunk.source];
        let (Some(segment), Some(start), Some(end)) =
            (source.segment, chunk.parts.first(), chunk.parts.last())
        else {
            return;
        };
        self.recordings[source.recording].fragments[segment]
            .content
            .release(start.start, end.end);
    }
}

impl Written {
    fn of(event: &Event<'_>, shift_ns: i64, bytes: usize) -> Written {
        let begin_ns = event.ts_ns.saturating_add(shift_ns);
        let end_ns = begin_ns.saturating_add(event.dur_ns);
        let end_ns = (!event.is_unfinished()).then_some(end_ns);
        Written {
            range_ns: (!event.is_metadata()).then_some((begin_ns, end_ns)),
            bytes,
        }
    }
}

/// What the trace says of itself.
fn other_data(report: &Report) -> Value {
    let mut data = json!({
        "tool": "trace-merge",
        "version": report.version,
        "base_ns": report.base_ns,
        "events": report.events_total,
        "unfinished_spans": report.unfinished_spans,
        "lost_events": report.lost_events,
        "damage": report.damage_by_kind,
        "window": report.window,
    });
    if report.clocks.len() > 1 {
        data["clocks"] = json!(report.clocks);
    }
    if let Some(filter) = &report.filter {
        data["filter"] = json!(filter);
    }
    if report.repaired_total > 0 {
        data["repaired"] = json!(report.repaired_by_kind);
    }
    let overlapping = [
        ("overlapping_spans", report.overlapping_spans),
        ("overlapping_spans_left", report.overlapping_spans_left),
    ];
    if let Some(links) = &report.links {
        data["linked_requests"] = json!(links.requests);
    }
    for (key, count) in overlapping.into_iter().filter(|(_, count)| *count > 0) {
        data[key] = json!(count);
    }
    data
}
