//! The first pass over all chunks: what each holds.

use crate::base::progress::Progress;
use crate::fragment::recording::Recording;
use crate::pass::chunk::{Chunk, unproven_sum};
use crate::pass::history::Histories;
use crate::pass::source::Source;
use crate::pass::visit::visit_mut;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::summarize::{summarize_objects, summarize_with};
use crate::summary::visitor::ChunkVisitor;
use std::convert::Infallible;

/// Looks at the events of all chunks, which many threads read.
pub(crate) trait Visitor: Sync {
    /// Visitor of one chunk.
    type OfChunk<'a>: ChunkVisitor<'a>
    where
        Self: 'a;

    /// Begins with a chunk of a source.
    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> Self::OfChunk<'a>;
}

/// The first pass; `objects` tells whether those that are no events count as well, and then nobody asks whether spans nest. `visitor` looks at the
/// events as well.
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
    let Ok(()) = visit_mut(sources, chunks, look, |of, (mut summary, sum)| {
        of.chunk.note(&summary);
        of.chunk.unproven_sum = Some(sum);
        let nestings = std::mem::take(&mut summary.nestings);
        histories.append(of.source.recording, nestings);
        of.source.summary.append(summary);
        Ok::<(), Infallible>(())
    });
    histories
}

/// What all sources of each recording hold. Their anchors are moved there: nobody asks a source for them.
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
