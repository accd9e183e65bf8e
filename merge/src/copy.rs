//! The second pass: copies every line and replaces only its times and ids.

use crate::alike::{Fronts, Timed};
use crate::flow;
use crate::indexer::is_left_out;
use crate::line::{Event, parse_canonical};
use crate::link::{Linker, Links, Lookup};
use crate::number::write_micros;
use crate::order::metadata_lines;
use crate::overflow::{Moved, Overflow};
use crate::patch::{Target, front, shifted, write_line};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::report::Report;
use crate::scan::{Found, Part, lines, scan_part};
use crate::sink::{Scratch, Sink, document_head, document_tail};
use crate::source::{Chunk, Source, kind};
use crate::verbatim::{object, write_verbatim};
use crate::window::{Lies, mark_cut};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Builder;

/// The second pass.
pub(crate) struct Job<'a> {
    pub(crate) recordings: &'a [Recording],
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
    pub(crate) plan: &'a Plan,
    pub(crate) overflow: &'a Overflow,
    /// The requests to link, if any shall be.
    pub(crate) links: Option<&'a Links>,
    pub(crate) sink: &'a Sink,
    pub(crate) progress: &'a Progress,
    /// Whether the lines are copied as they stand.
    pub(crate) verbatim: bool,
}

impl<'a> Job<'a> {
    /// Hands the whole trace to the sink, which keeps the first error. Gives the number of flow events that link requests.
    pub(crate) fn run(&self, threads: usize, report: &Report) -> u64 {
        let mut scratch = Scratch::default();
        scratch.text = document_head(&other_data(report));
        if !self.sink.put(0, &mut scratch, false) {
            return 0;
        }
        let (next, linked) = (AtomicUsize::new(0), AtomicU64::new(0));
        let first = self.chunks.iter().position(|chunk| chunk.events > 0);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(self.chunks.len()) {
                let work = || linked.fetch_add(self.work(&next, first), Ordering::Relaxed);
                if Builder::new().spawn_scoped(scope, work).is_err() {
                    // No thread is left: this one and those that there are do all.
                    work();
                    return;
                }
            }
        });
        scratch.text.clear();
        let added = (!self.verbatim).then(|| metadata_lines(&self.plan.identities.processes));
        for line in added.unwrap_or_default() {
            scratch.text.extend_from_slice(b",\n");
            scratch.text.extend_from_slice(line.as_bytes());
        }
        scratch.text.extend_from_slice(document_tail());
        self.sink.put(self.chunks.len() + 1, &mut scratch, true);
        linked.into_inner()
    }

    /// Takes chunks until there are none left, or the trace cannot be written. Gives the number of flow events that link requests.
    fn work(&self, next: &AtomicUsize, first: Option<usize>) -> u64 {
        let mut lookup = self.links.and_then(Links::lookup);
        self.take_chunks(next, first, lookup.as_mut());
        lookup.map_or(0, |lookup| lookup.written)
    }

    fn take_chunks(
        &self,
        next: &AtomicUsize,
        first: Option<usize>,
        mut lookup: Option<&mut Lookup<'a>>,
    ) {
        let mut scratch = Scratch::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = self.chunks.get(number) else {
                return;
            };
            scratch.text.clear();
            if self.verbatim {
                self.copy_verbatim(chunk, &mut scratch.text);
            } else if let Err(failure) =
                self.copy(number, chunk, lookup.as_deref_mut(), &mut scratch.text)
            {
                self.sink.fail(failure);
                return;
            }
            self.release(chunk);
            if first == Some(number) {
                scratch.text.remove(0);
            }
            if !self.sink.put(number + 1, &mut scratch, false) {
                return;
            }
            self.progress.add(chunk.len(), 0);
        }
    }

    fn copy(
        &self,
        number: usize,
        chunk: &'a Chunk,
        lookup: Option<&mut Lookup<'a>>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let source = &self.sources[chunk.source];
        let shift_ns = self.plan.shifts_ns[source.recording];
        let links = self.links.zip(lookup);
        let linker = |(links, lookup): (&Links, _)| links.linker(lookup, (chunk, shift_ns), source);
        let mut writer = Writer {
            targets: &self.plan.targets[source.recording],
            shift_ns,
            recent: [None; 64],
            moved: self.overflow.of_chunk(number)?,
            linker: links.and_then(linker),
            out,
        };
        if chunk.canonical && chunk.shown.is_all() && writer.moved.is_empty() {
            for part in &chunk.parts {
                writer.canonical(source.bytes, *part);
            }
        } else {
            chunk.each(source.bytes, |_, lies, event| writer.event(event, lies));
        }
        Ok(())
    }

    fn copy_verbatim(&self, chunk: &Chunk, out: &mut Vec<u8>) {
        let source = &self.sources[chunk.source];
        let is_ours = self.recordings[source.recording].header().is_some();
        let targets = &self.plan.targets[source.recording];
        for part in &chunk.parts {
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
                        out.extend_from_slice(object);
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

/// What events have in common that begin alike.
struct Alike<'a> {
    phase: u8,
    target: &'a Target,
    /// What stands before their time in the trace.
    front: Vec<u8>,
}

impl<'a> Alike<'a> {
    fn of(event: &Event<'_>, target: &'a Target) -> Alike<'a> {
        Alike {
            phase: event.phase,
            target,
            front: front(event, target),
        }
    }
}

/// Writes the events of one recording.
struct Writer<'a, 'l, 'o> {
    targets: &'a HashMap<(i64, i64), Target>,
    shift_ns: i64,
    /// The thread of the last event of each kind of threads: looking it up in the map takes as long as reading the event.
    recent: [Option<((i64, i64), &'a Target)>; 64],
    /// Those of its events that move to another row.
    moved: Moved<'a>,
    /// Writes the flows of requests that are served in its events.
    linker: Option<Linker<'a, 'l>>,
    out: &'o mut Vec<u8>,
}

impl<'a> Writer<'a, '_, '_> {
    /// The lines of a part that has nothing but canonical ones, of which none moves. Nearly all begin like one before, and only their time
    /// is looked at.
    fn canonical(&mut self, bytes: &'a [u8], part: Part) {
        let mut fronts: Fronts<'_, Alike<'a>> = Fronts::default();
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && self.write_alike(&front.known, &timed).is_some()
            {
                if let Some(linker) = &mut self.linker {
                    let Alike { phase, target, .. } = front.known;
                    linker.alike((phase, timed), (line, at), target, self.out);
                }
                continue;
            }
            let Some(event) = parse_canonical(line) else {
                continue;
            };
            if let Some(target) = self.target(&event) {
                fronts.keep(&event, || Alike::of(&event, target));
            }
            self.event(&event, Lies::Inside);
        }
    }

    /// Writes an event that begins like an earlier one; `None`, and nothing, if it needs a closer look.
    #[inline(always)]
    fn write_alike(&mut self, known: &Alike<'_>, timed: &Timed<'_>) -> Option<()> {
        let mut flow = None;
        if flow::has_id(known.phase) {
            let (id, rest) = timed.flow_id()?;
            flow = Some((flow::of_id2(id, known.target.ordinal)?, rest));
        }
        self.out.extend_from_slice(&known.front);
        write_micros(shifted(timed.ts_ns, self.shift_ns), self.out);
        if let Some((id, _)) = flow {
            self.out.push(b',');
            flow::write_id("id", id, self.out);
        }
        let rest = flow.map_or(timed.rest, |(_, rest)| rest);
        self.out.extend_from_slice(rest);
        Some(())
    }

    #[inline]
    fn event(&mut self, event: &Event<'a>, lies: Lies) {
        // Those that are not shown count as well.
        let row = self.moved.next();
        if lies == Lies::Outside || is_left_out(event) {
            return;
        }
        let Some(target) = self.target(event) else {
            return;
        };
        let target = row.unwrap_or(target);
        self.out.extend_from_slice(b",\n");
        let start = self.out.len();
        write_line(event, target, self.shift_ns, self.out);
        if lies == Lies::Across {
            mark_cut(self.out, start);
        }
        if let Some(linker) = &mut self.linker {
            linker.event(event, target, self.out);
        }
    }

    #[inline]
    fn target(&mut self, event: &Event<'_>) -> Option<&'a Target> {
        let thread = (event.pid, event.tid);
        let recent = &mut self.recent[kind(thread)];
        if recent.is_none_or(|(last, _)| last != thread) {
            *recent = self.targets.get(&thread).map(|target| (thread, target));
        }
        recent.map(|(_, target)| target)
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
    if let Some(filter) = &report.filter {
        data["filter"] = json!(filter);
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
