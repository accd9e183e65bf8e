//! Writes the events of a sorted trace.

use super::order::{OrderedEvent, TimeOrder, index};
use crate::event::line::{Event, parse, parse_again, parse_canonical};
use crate::event::patch::Target;
use crate::event::prefix_cache::PrefixCache;
use crate::event::whole::with_complete_span;
use crate::fragment::file::Fragment;
use crate::link::{Linker, Lookup};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::write::writer::{Job, LineFront, WrittenEvent, write};

/// Number of kinds of targets for which recent fronts are cached.
const KINDS: usize = 64;

/// Writer of events in the order of their times, from all recordings in turn.
pub(crate) struct SortedWriter<'a, 'l> {
    job: &'l Job<'a>,
    order: &'a TimeOrder<'a>,
    /// Cached fronts of lines for each kind of targets.
    fronts: Vec<PrefixCache<'a, LineFront<'a>>>,
    /// Writer for the flows of requests.
    linker: Option<Linker<'a, 'l>>,
    /// Sources with events in the last piece.
    sources: Vec<usize>,
    /// Last piece in which each source had an event.
    last_piece: Vec<Option<usize>>,
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

impl<'a, 'l> SortedWriter<'a, 'l> {
    pub(crate) fn new(
        job: &'l Job<'a>,
        order: &'a TimeOrder<'a>,
        lookup: Option<&'l mut Lookup<'a>>,
    ) -> Self {
        SortedWriter {
            job,
            order,
            fronts: (0..KINDS).map(|_| PrefixCache::default()).collect(),
            linker: lookup.map(Linker::without_input),
            sources: Vec::new(),
            last_piece: vec![None; job.sources.len()],
        }
    }

    /// Appends the events of one piece and returns its share of the chunks' bytes. Events whose
    /// lines were overwritten are left out.
    pub(crate) fn write_piece(&mut self, number: usize, out: &mut Vec<u8>) -> u64 {
        self.sources.clear();
        for entry in self.order.piece(number) {
            let start = out.len();
            self.add_source(number, entry);
            let end_args = match entry.is_whole() {
                true => self.job.extra_lanes.end_args(entry.at, self.job.sources),
                false => &[],
            };
            if self.write_entry(entry, end_args, out).is_none() {
                out.truncate(start);
                self.count_removed(entry);
            }
        }
        self.order.piece_bytes(number)
    }

    /// Returns the fragments that have events in the last piece.
    pub(crate) fn piece_fragments(&self) -> impl Iterator<Item = &'a Fragment> {
        let job = self.job;
        let sources = self.sources.iter().map(|source| &job.sources[*source]);
        sources.filter_map(|source| source.fragment(job.recordings))
    }

    #[inline(always)]
    fn add_source(&mut self, piece: usize, entry: &OrderedEvent) {
        if let Some(chunk) = self.job.chunks.get(index(entry.at.chunk))
            && self.last_piece[chunk.source] != Some(piece)
        {
            self.last_piece[chunk.source] = Some(piece);
            self.sources.push(chunk.source);
        }
    }

    fn count_removed(&self, entry: &OrderedEvent) {
        let chunk = self.job.chunks.get(index(entry.at.chunk));
        let source = chunk.map(|chunk| &self.job.sources[chunk.source]);
        if let Some(fragment) = source.and_then(|source| source.fragment(self.job.recordings)) {
            fragment.watch.add_removed(1);
        }
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

    /// Writes an event, with the args of its end if it is a begin that is written as a complete
    /// span. Returns `None` if its line is no longer an event.
    #[inline]
    fn write_entry(
        &mut self,
        entry: &OrderedEvent,
        end_args: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let line = self.line(entry)?;
        let is_linked = self.prepare_linker(&line);
        let is_cacheable = !entry.is_cut() && !entry.is_whole() && line.chunk.needs_only_shift();
        let kind = index(entry.target()) % KINDS;
        if is_cacheable
            && let Some((front, timed)) = self.fronts[kind].find(line.text)
            && std::ptr::eq(front.known.target, line.target)
            && front.known.write(&timed, line.shift_ns, out).is_some()
        {
            if let Some(linker) = self.linker.as_mut().filter(|_| is_linked) {
                let cached = front.known.line(timed, line.text, line.start);
                linker.cached(cached, line.target, out);
            }
            return Some(());
        }
        let event = line
            .chunk
            .warped(parse_line(line.chunk, line.text, line.start)?);
        if is_cacheable {
            self.fronts[kind].keep(&event, || LineFront::new(&event, line.target));
        }
        let mut write_event = |whole: &Event<'_>| {
            let (cut, is_across) = (line.chunk.cut(whole), entry.is_cut());
            let shown = WrittenEvent {
                whole,
                cut,
                is_across,
            };
            write(&shown, line.target, line.shift_ns, out);
        };
        match entry.is_whole() {
            true => with_complete_span(&event, end_args, write_event),
            false => write_event(&event),
        }
        if let Some(linker) = self.linker.as_mut().filter(|_| is_linked) {
            let cut = line.chunk.cut(&event);
            linker.event(cut.as_ref().unwrap_or(&event), line.target, out);
        }
        Some(())
    }

    /// Prepares the linker for a line. Returns true if the line may get flow events.
    #[inline(always)]
    fn prepare_linker(&mut self, line: &OrderedLine<'a>) -> bool {
        let both = self.job.links.zip(self.linker.as_mut());
        both.is_some_and(|(links, linker)| {
            links.prepare(linker, line.chunk, line.source, line.shift_ns, line.text)
        })
    }
}

/// Parses a line of a chunk again while the trace is written. The line starts at `start` in its
/// source. Uses the same fast parser as the first pass did, and the full one if that fails. Returns
/// `None` if the line is not an event.
fn parse_line<'a>(chunk: &Chunk, line: &'a [u8], start: usize) -> Option<Event<'a>> {
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
