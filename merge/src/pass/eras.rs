//! The eras of recordings of which some events lie far from all others.

use crate::event::era::{Days, Era, doubted};
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use crate::pass::visit::{AtOnce, visit};
use crate::summary::chunk_summary::ChunkSummary;
use std::convert::Infallible;

/// The eras of recordings in which not all events lie. Traces of other profilers have been looked at when they were read.
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

/// When the events of a recording began.
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
    let mut all = Days::default();
    let Ok(()) = visit(of_it, AtOnce::Many, look, |days| {
        all = std::mem::take(&mut all).append(days);
        Ok::<(), Infallible>(())
    });
    all
}
