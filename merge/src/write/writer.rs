//! Writes the events of one recording as the trace shows them.

use crate::base::number::write_micros;
use crate::base::time_cache::Stamp;
use crate::event::edges::Lies;
use crate::event::flow;
use crate::event::line::{Event, parse_canonical};
use crate::event::own_record::is_left_out;
use crate::event::patch::{Target, front, shifted, write_line};
use crate::event::prefix_cache::{Fronts, Timed};
use crate::event::scan::{Part, lines};
use crate::lanes::assign::Form;
use crate::lanes::moves::Moved;
use crate::link::Linker;
use crate::pass::chunk::Chunk;
use crate::select::window::add_args;
use crate::summary::thread::thread_kind;
use crate::summary::visitor::CachedLine;
use sa_format::Phase;
use std::collections::HashMap;

/// What events have in common that begin alike.
pub(crate) struct Alike<'a> {
    phase: Phase,
    pub(crate) target: &'a Target,
    /// Process and thread, as recorded.
    thread: (i64, i64),
    /// What stands before their time in the trace.
    front: Vec<u8>,
}

impl<'a> Alike<'a> {
    pub(crate) fn of(event: &Event<'_>, target: &'a Target) -> Alike<'a> {
        Alike {
            phase: event.phase,
            target,
            thread: (event.pid, event.tid),
            front: front(event, target),
        }
    }

    /// Returns the line of an event that begins like these, which starts at an offset of its source.
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

    /// Writes an event that begins like these; `None`, and nothing, if it needs a closer look.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        timed: &Timed<'_>,
        shift_ns: i64,
        stamp: &mut Stamp,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut flow = None;
        if self.phase.has_id() {
            let (id, rest) = timed.flow_id()?;
            flow = Some((flow::of_id2(id, self.target.ordinal)?, rest));
        }
        out.extend_from_slice(&self.front);
        stamp.write(shifted(timed.ts_ns, shift_ns), out);
        if let Some((id, _)) = flow {
            out.push(b',');
            flow::write_id("id", id, out);
        }
        let rest = flow.map_or(timed.rest, |(_, rest)| rest);
        out.extend_from_slice(rest);
        Some(())
    }
}

/// Writes the events of one recording.
pub(crate) struct EventWriter<'a, 'l, 'o> {
    /// The chunk of the events, which knows the window.
    pub(crate) chunk: &'a Chunk,
    pub(crate) targets: &'a HashMap<(i64, i64), Target>,
    pub(crate) shift_ns: i64,
    /// The thread of the last event of each kind of threads: looking it up in the map takes as long as reading the event.
    pub(crate) recent: [Option<((i64, i64), &'a Target)>; 64],
    pub(crate) stamp: Stamp,
    /// Those of its events that move to another row.
    pub(crate) moved: Moved<'a>,
    /// Writes the flows of requests that are served in its events.
    pub(crate) linker: Option<Linker<'a, 'l>>,
    pub(crate) out: &'o mut Vec<u8>,
}

impl<'a> EventWriter<'a, '_, '_> {
    /// The lines of a part that has nothing but canonical ones, of which none moves. Nearly all begin like one before, and only their time
    /// is looked at.
    pub(crate) fn canonical(&mut self, bytes: &'a [u8], part: Part) {
        let mut fronts: Fronts<'_, Alike<'a>> = Fronts::default();
        for (line, at) in lines(bytes, part) {
            if let Some((front, timed)) = fronts.find(line)
                && front
                    .known
                    .write(&timed, self.shift_ns, &mut self.stamp, self.out)
                    .is_some()
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
                fronts.keep(&event, || Alike::of(&event, target));
            }
            self.event(&event, Lies::Inside);
        }
    }

    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'a>, lies: Lies) {
        self.event_with(event, lies, true);
    }

    /// The same with the flows of its requests, or without them.
    #[inline]
    pub(crate) fn event_with(&mut self, event: &Event<'a>, lies: Lies, links: bool) {
        // Those that are not shown count as well.
        let place = self.moved.next();
        if lies == Lies::Outside || place.form == Form::Omitted || is_left_out(event) {
            return;
        }
        let Some(target) = self.target(event) else {
            return;
        };
        let target = place.target.unwrap_or(target);
        let is_across = lies == Lies::Across;
        place.with(event, |event| {
            let (whole, cut) = (event, self.chunk.cut(event));
            let shown = WrittenEvent {
                whole,
                cut,
                is_across,
            };
            write(&shown, target, self.shift_ns, &mut self.stamp, self.out);
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

/// An event, and what the trace shows of it.
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

    /// Returns the args that say what is not shown of it.
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

/// Writes an event and what stands before each.
#[inline(always)]
pub(crate) fn write(
    shown: &WrittenEvent<'_, '_>,
    target: &Target,
    shift_ns: i64,
    stamp: &mut Stamp,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b",\n");
    let start = out.len();
    write_line(shown.event(), target, shift_ns, stamp, out);
    if shown.is_across || shown.cut.is_some() {
        add_args(out, start, &shown.marks(shift_ns));
    }
}
