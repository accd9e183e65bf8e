//! What the second pass works on.

use crate::base::progress::Progress;
use crate::base::time_cache::Stamp;
use crate::event::line::Event;
use crate::fragment::recording::Recording;
use crate::identity::plan::Plan;
use crate::lanes::moves::Overflow;
use crate::link::{Links, Lookup};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::write::writer::EventWriter;

/// What the second pass writes: all that was found and decided.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) recordings: &'a [Recording],
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
    pub(crate) plan: &'a Plan,
    /// The events that go to other rows.
    pub(crate) overflow: &'a Overflow,
    /// The requests to link, if any shall be.
    pub(crate) links: Option<&'a Links>,
    pub(crate) progress: &'a Progress,
    /// Whether the lines are copied as they stand.
    pub(crate) verbatim: bool,
}

impl<'a> Job<'a> {
    /// Writes the lines of a chunk to `out`. Calls `found` with each event as it is shown, its time in ns from the trace's base, and the length of its line,
    /// which includes what separates it from the line before.
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
        chunk.each(source.bytes, |_, lies, event| {
            let start = writer.out.len();
            writer.event(event, lies);
            let bytes = writer.out.len() - start;
            if bytes > 0 {
                let cut = chunk.cut(event);
                let event = cut.as_ref().unwrap_or(event);
                found(event, event.ts_ns.saturating_add(writer.shift_ns), bytes);
            }
        });
    }

    /// Writes the events of a chunk.
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
            stamp: Stamp::default(),
            moved: self.overflow.of_chunk(number, self.sources),
            linker: links.and_then(linker),
            out,
        }
    }

    /// Times of the events of each chunk that is read, in ns from the trace's base.
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
