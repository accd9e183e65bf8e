//! Writes the events of a sorted trace.

use super::order::TimeOrder;
use super::ordered_event::OrderedEvent;
use super::targets::index;
use crate::Error;
use crate::base::time_cache::Stamp;
use crate::event::line::{Event, parse, parse_again, parse_canonical};
use crate::event::patch::Target;
use crate::event::prefix_cache::Fronts;
use crate::link::{Linker, Lookup};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::pass::visitor::CachedLine;
use crate::write::job::Job;
use crate::write::writer::{Alike, write};
use std::io;

/// Kinds of targets of which the last fronts are kept.
const KINDS: usize = 64;

/// Writes events in the order of their times, those of all recordings in turn.
pub(crate) struct Scribe<'a, 'l> {
    job: &'l Job<'a>,
    order: &'a TimeOrder<'a>,
    stamp: Stamp,
    /// How lines began that went to each kind of targets.
    fronts: Vec<Fronts<'a, Alike<'a>>>,
    /// Writes the flows of requests that are served in the events.
    linker: Option<Linker<'a, 'l>>,
}

/// The line of an event, read again.
struct OrderedLine<'a> {
    chunk: &'a Chunk,
    source: &'a Source<'a>,
    shift_ns: i64,
    text: &'a [u8],
    start: usize,
    target: &'a Target,
}

impl<'a, 'l> Scribe<'a, 'l> {
    pub(crate) fn new(
        job: &'l Job<'a>,
        order: &'a TimeOrder<'a>,
        lookup: Option<&'l mut Lookup<'a>>,
    ) -> Self {
        Scribe {
            job,
            order,
            stamp: Stamp::default(),
            fronts: (0..KINDS).map(|_| Fronts::default()).collect(),
            linker: lookup.map(Linker::nowhere),
        }
    }

    /// Appends the events of one piece; gives its share of the chunks.
    ///
    /// # Errors
    /// If a line is not there any more.
    pub(crate) fn piece(&mut self, number: usize, out: &mut Vec<u8>) -> io::Result<u64> {
        for entry in self.order.piece(number)? {
            self.entry(&entry, out)
                .ok_or_else(|| self.changed(&entry))?;
        }
        Ok(self.order.bytes_of_piece(number))
    }

    fn changed(&self, entry: &OrderedEvent) -> io::Error {
        let chunk = self.job.chunks.get(index(entry.at.chunk));
        let source = chunk.map(|chunk| &self.job.sources[chunk.source]);
        let path = source.map(|source| source.path.to_owned());
        let offset = source.map_or(0, |source| source.file_offset(entry.start));
        let path = path.unwrap_or_default();
        io::Error::other(Error::Changed { path, offset })
    }

    #[inline(always)]
    fn line(&self, entry: &OrderedEvent) -> Option<OrderedLine<'a>> {
        let chunk = self.job.chunks.get(index(entry.at.chunk))?;
        let source = &self.job.sources[chunk.source];
        let start = usize::try_from(entry.start).ok()?;
        Some(OrderedLine {
            chunk,
            source,
            shift_ns: self.job.plan.shifts_ns[source.recording],
            text: source.bytes.get(start..start + index(entry.len))?,
            start,
            target: self.order.targets.list.get(index(entry.target()))?,
        })
    }

    /// Writes an event; `None` if its line is no event any more.
    #[inline]
    fn entry(&mut self, entry: &OrderedEvent, out: &mut Vec<u8>) -> Option<()> {
        let line = self.line(entry)?;
        let is_linked = self.aim(&line);
        let is_alike = !entry.is_cut() && line.chunk.is_copied_alike();
        let kind = index(entry.target()) % KINDS;
        if is_alike
            && let Some((front, timed)) = self.fronts[kind].find(line.text)
            && std::ptr::eq(front.known.target, line.target)
            && front
                .known
                .write(&timed, line.shift_ns, &mut self.stamp, out)
                .is_some()
        {
            if let Some(linker) = self.linker.as_mut().filter(|_| is_linked) {
                let cached = CachedLine {
                    phase: front.known.phase,
                    timed,
                    text: line.text,
                    start: line.start,
                };
                linker.cached(cached, line.target, out);
            }
            return Some(());
        }
        let event = line.chunk.warped(again(line.chunk, line.text, line.start)?);
        if is_alike {
            self.fronts[kind].keep(&event, || Alike::of(&event, line.target));
        }
        let (shift_ns, stamp) = (line.shift_ns, &mut self.stamp);
        write(&event, line.target, shift_ns, stamp, entry.is_cut(), out);
        if let Some(linker) = self.linker.as_mut().filter(|_| is_linked) {
            linker.event(&event, line.target, out);
        }
        Some(())
    }

    /// Points the linker at a line; tells whether ids of requests may stand in it.
    #[inline(always)]
    fn aim(&mut self, line: &OrderedLine<'a>) -> bool {
        let both = self.job.links.zip(self.linker.as_mut());
        both.is_some_and(|(links, linker)| {
            let number = line.chunk.source;
            links.aim(linker, number, line.source, line.shift_ns, line.text)
        })
    }
}

/// A line that stood for an event before, in the way in which its chunk is read.
fn again<'a>(chunk: &Chunk, line: &'a [u8], start: usize) -> Option<Event<'a>> {
    let is_trusted = || {
        let part = chunk.parts.partition_point(|part| part.end <= start);
        chunk.parts.get(part).is_some_and(|part| part.trusted)
    };
    let quick = match chunk.canonical || is_trusted() {
        true => parse_canonical(line),
        false if chunk.plain => parse_again(line),
        false => None,
    };
    quick.or_else(|| parse(line).ok())
}
