//! The first pass over all chunks. It summarizes each chunk, finds the era of recordings with
//! events far from all others, and adds a loss record for each gap that the recorder does not
//! explain.

use crate::base::progress::Progress;
use crate::event::era::{Days, Era, doubted};
use crate::event::scan::Part;
use crate::fragment::assembly::Assembly;
use crate::fragment::recording::Recording;
use crate::pass::chunk::{Chunk, unproven_sum};
use crate::pass::history::Histories;
use crate::pass::source::Source;
use crate::pass::visit::{AtOnce, visit, visit_mut};
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{gap_records, missing};
use crate::summary::summarize::{ChunkVisitor, summarize, summarize_objects, summarize_with};
use std::convert::Infallible;

/// Reads the events of all chunks, on many threads.
pub(crate) trait Visitor: Sync {
    /// Visitor of one chunk.
    type OfChunk<'a>: ChunkVisitor<'a>
    where
        Self: 'a;

    /// Returns the visitor for a chunk of a source.
    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> Self::OfChunk<'a>;
}

/// Summarizes all chunks. If `objects` is true, JSON objects that are not events count as well, and
/// the nesting of spans is not examined. `visitor` reads the events too.
pub(crate) fn first_pass(
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
    objects: bool,
    visitor: Option<&impl Visitor>,
    progress: &Progress,
) -> Histories {
    let mut histories = Histories::default();
    let look = |_, chunk: &Chunk, source: &Source<'_>| {
        let sum = unproven_sum(source.bytes, &chunk.parts);
        let summary = match objects {
            true => summarize_objects(source.bytes, &chunk.parts),
            false => {
                let visitor = visitor.map(|visitor| visitor.chunk(chunk, source));
                summarize_with(source.bytes, &chunk.parts, visitor, chunk.era)
            }
        };
        progress.add(chunk.len(), summary.events());
        (summary, sum)
    };
    let Ok(()) = visit_mut(
        sources,
        chunks,
        look,
        |chunk, source, (mut summary, sum)| {
            chunk.note(&summary);
            chunk.unproven_sum = Some(sum);
            let nestings = std::mem::take(&mut summary.nestings);
            histories.append(source.recording, nestings);
            source.summary.append(summary);
            Ok::<(), Infallible>(())
        },
    );
    histories
}

/// Combines the summaries of all sources of each recording. Moves the anchors out of the sources,
/// because nobody else reads them there.
pub(crate) fn by_recording(
    recordings: &[Recording],
    sources: &mut [Source<'_>],
) -> Vec<ChunkSummary> {
    let mut summaries = vec![ChunkSummary::default(); recordings.len()];
    for source in sources {
        let anchors = std::mem::take(&mut source.summary.anchors);
        let summary = ChunkSummary {
            anchors,
            ..source.summary.clone()
        };
        let open = source.open_spans();
        let all = &mut summaries[source.recording];
        all.append(summary);
        all.open = all.open.or(open.filter(|_| !all.ended));
    }
    summaries
}

/// Adds a loss record for each gap that the recorder does not explain. A gap gets its time from the
/// events next to it, so `eras` must be known by then. It is empty if all times are good.
pub(crate) fn add_gaps<'a>(
    recordings: impl Iterator<Item = (&'a Recording, &'a Assembly)>,
    eras: &[Option<Era>],
    summaries: &mut [ChunkSummary],
    sources: &mut Vec<Source<'a>>,
    chunks: &mut Vec<Chunk>,
) {
    for (number, (recording, assembly)) in recordings.enumerate() {
        let summary = &summaries[number];
        let missing = missing(assembly, &summary.explained, summary.stopped);
        if missing.is_empty() {
            continue;
        }
        let era = eras.get(number).copied().flatten();
        let times = summaries[number].range_ns();
        let records = || gap_records(recording, &missing, times, era);
        let lines = assembly.gap_lines.get_or_init(records);
        let all = vec![Part::all_of(lines)];
        let summary = summarize(lines, &all);
        let Some(path) = recording.path().filter(|_| !lines.is_empty()) else {
            // No event has a time that the records could use.
            let mut of_it = sources.iter_mut();
            let Some(first) = of_it.find(|source| source.recording == number) else {
                continue;
            };
            for summary in [&mut first.summary, &mut summaries[number]] {
                summary.lost_events = summary.lost_events.saturating_add(missing.len() as u64);
            }
            continue;
        };
        summaries[number].append(summary.clone());
        let mut chunk = Chunk::of(sources.len(), all, &summary);
        chunk.era = era;
        chunks.push(chunk);
        let mut source = Source::of_lines(number, path, lines);
        source.summary = summary;
        sources.push(source);
    }
}

/// Returns the era of each recording with events outside of it. Traces of other profilers were checked when they were read.
pub(crate) fn eras(
    summaries: &[ChunkSummary],
    sources: &[Source<'_>],
    chunks: &[Chunk],
    is_foreign: impl Fn(usize) -> bool,
) -> Vec<Option<Era>> {
    let era = |(recording, summary): (usize, &ChunkSummary)| {
        let days = || days(recording, sources, chunks);
        let range_ns = summary.range_ns().filter(|_| !is_foreign(recording))?;
        doubted(range_ns, &summary.anchors, days)
    };
    summaries.iter().enumerate().map(era).collect()
}

/// Returns the days on which the events of a recording began.
fn days(recording: usize, sources: &[Source<'_>], chunks: &[Chunk]) -> Days {
    let numbers = 0..chunks.len();
    let of_it = numbers.filter(|number| sources[chunks[*number].source].recording == recording);
    let look = |number: usize| {
        let (chunk, mut days) = (&chunks[number], Days::default());
        chunk.recorded(sources[chunk.source].bytes, |event| {
            if !event.is_metadata() {
                days.see(event.ts_ns);
            }
        });
        days
    };
    visit(of_it, AtOnce::Many, look).fold(Days::default(), Days::append)
}
