//! Blocks that only the first pass meets.

use crate::base::part::Part;
use crate::fragment::assemble::seems_foreign;
use crate::fragment::blocks::hold_header;
use crate::fragment::recording::Recording;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use rayon::prelude::*;

/// Whether the first pass met a block in a fragment that seems foreign: one of ours whose first lines are damaged. A line that starts
/// like a block header is one, or damage, or repeats a key, so it stands in no plain chunk.
pub(crate) fn met_hidden_blocks(
    recordings: &[Recording],
    sources: &[Source<'_>],
    chunks: &[Chunk],
) -> bool {
    let is_one = |chunk: &Chunk| {
        let source = &sources[chunk.source];
        let fragments = &recordings[source.recording].fragments;
        let fragment = source.segment.map(|segment| &fragments[segment]);
        let has_header = |part: &Part| hold_header(&source.bytes[part.start..part.end]);
        fragment.is_some_and(seems_foreign) && chunk.parts.iter().any(has_header)
    };
    let odd = chunks.par_iter().filter(|chunk| !chunk.plain);
    odd.any(is_one)
}
