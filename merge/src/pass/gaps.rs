//! Adds a loss record for each gap that no record of its recorder explains.

use crate::event::era::Era;
use crate::event::scan::Part;
use crate::fragment::assembly::Assembly;
use crate::fragment::recording::Recording;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{gap_records, missing};
use crate::summary::summarize::summarize;

/// Adds a record for each gap that no loss record explains. `eras` must be known by then (empty if all times are good): a gap has its time from the
/// events beside it.
pub(crate) fn add_gaps<'a>(
    recordings: &'a [Recording],
    assemblies: &'a [Assembly],
    eras: &[Option<Era>],
    summaries: &mut [ChunkSummary],
    sources: &mut Vec<Source<'a>>,
    chunks: &mut Vec<Chunk>,
) {
    for (number, (recording, assembly)) in recordings.iter().zip(assemblies).enumerate() {
        let summary = &summaries[number];
        let missing = missing(assembly, &summary.explained, summary.stopped);
        if missing.is_empty() {
            continue;
        }
        let era = eras.get(number).copied().flatten();
        let times = summaries[number].range_ns();
        let lines = assembly
            .gap_lines
            .get_or_init(|| gap_records(recording, &missing, times, era));
        let all = vec![Part::all_of(lines)];
        let summary = summarize(lines, &all);
        let path = recording.path().filter(|_| !lines.is_empty());
        let Some(path) = path else {
            // Nothing has a time at which they could stand.
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
