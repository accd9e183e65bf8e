//! The first pass over all chunks, before anything is written: processes, clocks and lanes are
//! derived from all events. The pass summarizes each chunk (a few byte ranges of a source), finds
//! the era (valid period) of recordings with events far from all others, and adds a loss record for
//! each gap that the recorder does not explain.

use crate::base::progress::Progress;
use crate::event::era::{Days, Era, era_of_odd_times};
use crate::event::scan::Part;
use crate::fragment::assembly::Assembly;
use crate::fragment::recording::Recording;
use crate::pass::chunk::{Chunk, unverified_hash};
use crate::pass::history::Histories;
use crate::pass::parallel::{BatchSize, map_and_merge, map_chunks};
use crate::pass::source::Source;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{gap_records, missing};
use crate::summary::summarize::{ChunkVisitor, summarize, summarize_objects, summarize_with};
use std::convert::Infallible;

/// Reads the events of all chunks, on many threads.
pub(crate) trait Visitor: Sync {
    /// Visitor of one chunk.
    type PerChunk<'a>: ChunkVisitor<'a>
    where
        Self: 'a;

    /// Creates the visitor that reads the events of one chunk.
    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> Self::PerChunk<'a>;
}

/// Summarizes all chunks in parallel, and stores the summaries in `chunks` and `sources`. Each
/// event also goes to `visitor`. If `objects` is true, JSON objects that are not events count as
/// well, and the nesting of spans is not examined. Returns what is known about the nesting of each
/// thread's spans.
pub(crate) fn first_pass(
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
    objects: bool,
    visitor: Option<&impl Visitor>,
    progress: &Progress,
) -> Histories {
    let mut histories = Histories::default();
    let scan = |_, chunk: &Chunk, source: &Source<'_>| {
        let sum = unverified_hash(source.bytes, &chunk.parts);
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
    let Ok(()) = map_and_merge(
        sources,
        chunks,
        scan,
        |chunk, source, (mut summary, sum)| {
            chunk.set_summary(&summary);
            chunk.unverified_hash = Some(sum);
            let nestings = std::mem::take(&mut summary.nestings);
            histories.append(source.recording, nestings);
            source.summary.append(summary);
            Ok::<(), Infallible>(())
        },
    );
    histories
}

/// Combines the summaries of all sources of each recording, and returns one summary for each
/// recording. Moves the anchors out of the sources, because nobody else reads them there.
pub(crate) fn summaries_by_recording(
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
        let open = source.open_span_count();
        let all = &mut summaries[source.recording];
        all.append(summary);
        all.open = all.open.or(open.filter(|_| !all.ended));
    }
    summaries
}

/// Adds a loss record for each gap in a recording that the recorder does not explain. A gap gets
/// its time from the events next to it, so `eras` (the valid period of each recording) must be
/// known by then. `eras` is empty if all times are good.
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
        let all = vec![Part::whole(lines)];
        let summary = summarize(lines, &all);
        let Some(path) = recording.path().filter(|_| !lines.is_empty()) else {
            // No event has a time that the records could use.
            let first = sources.iter_mut().find(|source| source.recording == number);
            let Some(first) = first else {
                continue;
            };
            for summary in [&mut first.summary, &mut summaries[number]] {
                summary.lost_events = summary.lost_events.saturating_add(missing.len() as u64);
            }
            continue;
        };
        summaries[number].append(summary.clone());
        let mut chunk = Chunk::from_summary(sources.len(), all, &summary);
        chunk.era = era;
        chunks.push(chunk);
        let mut source = Source::from_lines(number, path, lines);
        source.summary = summary;
        sources.push(source);
    }
}

/// Returns, for each recording, the period in which its events must have happened. `None` if no
/// event is far from the others. Traces of other profilers were checked when they were read.
pub(crate) fn eras(
    summaries: &[ChunkSummary],
    sources: &[Source<'_>],
    chunks: &[Chunk],
    is_foreign: impl Fn(usize) -> bool,
) -> Vec<Option<Era>> {
    let era = |(recording, summary): (usize, &ChunkSummary)| {
        let days = || days(recording, sources, chunks);
        let range_ns = summary.range_ns().filter(|_| !is_foreign(recording))?;
        era_of_odd_times(range_ns, &summary.anchors, days)
    };
    summaries.iter().enumerate().map(era).collect()
}

/// Returns the days on which the events of a recording began.
fn days(recording: usize, sources: &[Source<'_>], chunks: &[Chunk]) -> Days {
    let is_in_recording = |number: &usize| sources[chunks[*number].source].recording == recording;
    let numbers = (0..chunks.len()).filter(is_in_recording);
    let scan = |number: usize| {
        let (chunk, mut days) = (&chunks[number], Days::default());
        chunk.for_each_recorded(sources[chunk.source].bytes, |event| {
            if !event.is_metadata() {
                days.see(event.ts_ns);
            }
        });
        days
    };
    map_chunks(numbers, BatchSize::Large, scan).fold(Days::default(), Days::append)
}
