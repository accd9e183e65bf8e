//! Writes the events of one recording as the trace shows them.

use crate::base::number::write_micros;
use crate::base::progress::Progress;
use crate::event::edges::Relation;
use crate::event::flow;
use crate::event::line::{Event, is_left_out, parse_canonical};
use crate::event::patch::{Target, front, shifted, write_line};
use crate::event::prefix_cache::{PrefixCache, Timed};
use crate::event::scan::{Part, lines};
use crate::fragment::recording::Recording;
use crate::identity::plan::Plan;
use crate::lanes::assign::Form;
use crate::lanes::moves::{ChunkMoves, ExtraLanes};
use crate::link::{Linker, Links, Lookup};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::select::window::add_args;
use crate::summary::chunk_summary::thread_kind;
use crate::summary::summarize::CachedLine;
use sa_format::Phase;
use std::collections::HashMap;

/// Cached data of events whose lines begin alike.
pub(crate) struct LineFront<'a> {
    phase: Phase,
    pub(crate) target: &'a Target,
    /// Process and thread, as recorded.
    thread: (i64, i64),
    /// Text before their time in the trace.
    front: Vec<u8>,
}

impl<'a> LineFront<'a> {
    pub(crate) fn new(event: &Event<'_>, target: &'a Target) -> LineFront<'a> {
        LineFront {
            phase: event.phase,
            target,
            thread: (event.pid, event.tid),
            front: front(event, target),
        }
    }

    /// Returns the line of an event that begins like these, which starts at an offset of its
    /// source.
    #[inline(always)]
    pub(crate) fn line<'l>(
        &self,
        timed: Timed<'l>,
        text: &'l [u8],
        start: usize,
    ) -> CachedLine<'l> {
        CachedLine {
            phase: self.phase,
            timed,
            text,
            start,
            thread: self.thread,
        }
    }

    /// Writes an event that begins like these. Returns `None` and writes nothing if the event must
    /// be parsed.
    #[inline(always)]
    pub(crate) fn write(&self, timed: &Timed<'_>, shift_ns: i64, out: &mut Vec<u8>) -> Option<()> {
        let mut flow = None;
        if self.phase.has_id() {
            let (id, rest) = timed.flow_id()?;
            flow = Some((flow::id2_trace_id(id, self.target.ordinal)?, rest));
        }
        out.extend_from_slice(&self.front);
        write_micros(shifted(timed.ts_ns, shift_ns), out);
        if let Some((id, _)) = flow {
            out.push(b',');
            flow::write_id("id", id, out);
        }
        let rest = flow.map_or(timed.rest, |(_, rest)| rest);
        out.extend_from_slice(rest);
        Some(())
    }
}

/// Writer for the events of one recording.
pub(crate) struct EventWriter<'a, 'l, 'o> {
    /// Chunk of the events, which contains the window.
    pub(crate) chunk: &'a Chunk,
    pub(crate) targets: &'a HashMap<(i64, i64), Target>,
    pub(crate) shift_ns: i64,
    /// Last thread of each kind of threads. A lookup in the map would take as long as reading the
    /// event.
    pub(crate) recent: [Option<((i64, i64), &'a Target)>; 64],
    /// Events that move to another lane.
    pub(crate) moved: ChunkMoves<'a>,
    /// Writer for the flows of requests.
    pub(crate) linker: Option<Linker<'a, 'l>>,
    pub(crate) out: &'o mut Vec<u8>,
}

impl<'a> EventWriter<'a, '_, '_> {
    /// Writes a part with only canonical lines that do not move. Nearly all begin like an earlier
    /// one, so that only their time is parsed.
    pub(crate) fn write_canonical(&mut self, bytes: &'a [u8], part: Part) {
        let mut fronts: PrefixCache<'_, LineFront<'a>> = PrefixCache::default();
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && front.known.write(&timed, self.shift_ns, self.out).is_some()
            {
                if let Some(linker) = &mut self.linker {
                    let line = front.known.line(timed, line, at);
                    linker.cached(line, front.known.target, self.out);
                }
                continue;
            }
            let Some(event) = parse_canonical(line) else {
                continue;
            };
            if let Some(target) = self.target(&event) {
                fronts.keep(&event, || LineFront::new(&event, target));
            }
            self.write_linked(&event, Relation::Inside);
        }
    }

    #[inline]
    pub(crate) fn write_linked(&mut self, event: &Event<'a>, relation: Relation) {
        self.write_event(event, relation, true);
    }

    /// Writes an event, with or without the flows of its requests.
    #[inline]
    pub(crate) fn write_event(&mut self, event: &Event<'a>, relation: Relation, links: bool) {
        // Advance even if the event is not shown.
        let moved = self.moved.next();
        if relation == Relation::Outside || moved.form == Form::Omitted || is_left_out(event) {
            return;
        }
        let Some(target) = self.target(event) else {
            return;
        };
        let target = moved.target.unwrap_or(target);
        let is_across = relation == Relation::Across;
        moved.with(event, |event| {
            let (whole, cut) = (event, self.chunk.cut(event));
            let shown = WrittenEvent {
                whole,
                cut,
                is_across,
            };
            write(&shown, target, self.shift_ns, self.out);
        });
        if let Some(linker) = self.linker.as_mut().filter(|_| links) {
            let cut = self.chunk.cut(event);
            linker.event(cut.as_ref().unwrap_or(event), target, self.out);
        }
    }

    #[inline]
    fn target(&mut self, event: &Event<'_>) -> Option<&'a Target> {
        let thread = (event.pid, event.tid);
        let recent = &mut self.recent[thread_kind(thread)];
        if recent.is_none_or(|(last, _)| last != thread) {
            *recent = self.targets.get(&thread).map(|target| (thread, target));
        }
        recent.map(|(_, target)| target)
    }
}

/// An event, and its form in the trace.
pub(crate) struct WrittenEvent<'e, 'a> {
    pub(crate) whole: &'e Event<'a>,
    /// The part within a window, if the event crosses its edge.
    pub(crate) cut: Option<Event<'a>>,
    /// True if it is a span that crosses an edge of the window or of a part of the trace.
    pub(crate) is_across: bool,
}

impl<'a> WrittenEvent<'_, 'a> {
    pub(crate) fn event(&self) -> &Event<'a> {
        self.cut.as_ref().unwrap_or(self.whole)
    }

    /// Returns the args that describe the hidden part of the event.
    #[cold]
    fn marks(&self, shift_ns: i64) -> Vec<u8> {
        let mut marks = Vec::new();
        if self.is_across {
            marks.extend_from_slice(br#""sa_cut":true,"#);
        }
        if self.cut.is_some() {
            marks.extend_from_slice(br#""sa_whole_ts":"#);
            write_micros(shifted(self.whole.ts_ns, shift_ns), &mut marks);
            marks.push(b',');
            if self.whole.phase == Phase::Complete {
                marks.extend_from_slice(br#""sa_whole_dur":"#);
                write_micros(self.whole.dur_ns.unsigned_abs(), &mut marks);
                marks.push(b',');
            }
        }
        marks.pop();
        marks
    }
}

/// Writes a separator and an event.
#[inline(always)]
pub(crate) fn write(
    shown: &WrittenEvent<'_, '_>,
    target: &Target,
    shift_ns: i64,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b",\n");
    let start = out.len();
    write_line(shown.event(), target, shift_ns, out);
    if shown.is_across || shown.cut.is_some() {
        add_args(out, start, &shown.marks(shift_ns));
    }
}

/// Input of the second pass: the results of all earlier stages.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) recordings: &'a [Recording],
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
    pub(crate) plan: &'a Plan,
    /// Events that move to other lanes.
    pub(crate) extra_lanes: &'a ExtraLanes,
    /// Requests to link, if linking is enabled.
    pub(crate) links: Option<&'a Links>,
    pub(crate) progress: &'a Progress,
    /// True if lines are copied unchanged.
    pub(crate) verbatim: bool,
}

impl<'a> Job<'a> {
    /// Writes the lines of a chunk to `out`. Calls `found` with each event as it is shown, its time
    /// in ns from the trace's base, and the length of its line including the separator before it.
    pub(crate) fn measure(
        &self,
        number: usize,
        out: &mut Vec<u8>,
        mut found: impl FnMut(&Event<'_>, i64, usize),
    ) {
        let chunk = &self.chunks[number];
        let source = &self.sources[chunk.source];
        let mut lookup = self.links.and_then(Links::lookup);
        let mut writer = self.writer(number, lookup.as_mut(), out);
        chunk.for_each_event(source.bytes, |_, relation, event| {
            let start = writer.out.len();
            writer.write_linked(event, relation);
            let bytes = writer.out.len() - start;
            if bytes > 0 {
                let cut = chunk.cut(event);
                let event = cut.as_ref().unwrap_or(event);
                found(event, event.ts_ns.saturating_add(writer.shift_ns), bytes);
            }
        });
    }

    /// Creates the writer for the events of a chunk.
    pub(super) fn writer<'l, 'o>(
        &self,
        number: usize,
        lookup: Option<&'l mut Lookup<'a>>,
        out: &'o mut Vec<u8>,
    ) -> EventWriter<'a, 'l, 'o> {
        let chunk: &'a Chunk = &self.chunks[number];
        let source = &self.sources[chunk.source];
        let shift_ns = self.plan.shifts_ns[source.recording];
        let links = self.links.zip(lookup);
        let linker =
            |(links, lookup): (&'a Links, _)| links.linker(lookup, chunk, source, shift_ns);
        EventWriter {
            chunk,
            targets: &self.plan.targets[source.recording],
            shift_ns,
            recent: [None; 64],
            moved: self.extra_lanes.chunk_moves(number, self.sources),
            linker: links.and_then(linker),
            out,
        }
    }

    /// Returns the time range of each chunk that is read, in ns from the trace's base.
    pub(crate) fn ranges_ns(&self) -> Vec<(i64, i64)> {
        let range = |chunk: &Chunk| {
            let shift_ns = self.plan.shifts_ns[self.sources[chunk.source].recording];
            let (first, last) = chunk.shown_range_ns()?;
            Some((
                first.saturating_add(shift_ns),
                last.saturating_add(shift_ns),
            ))
        };
        self.chunks.iter().filter_map(range).collect()
    }
}
