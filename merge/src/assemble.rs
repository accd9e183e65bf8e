//! Where blocks are looked for in fragments, before their lines are read.

use crate::assembly::Assembly;
use crate::blocks::{hold_header, unsplit};
use crate::fragment::Fragment;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::scan::{PART_BYTES, Part};
use crate::source::{Chunk, Source};
use rayon::prelude::*;

/// Where to look for blocks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    /// In all fragments that do not seem foreign.
    WhereBlocksShow,
    Everywhere,
}

/// The lines of each recording, in the order in which they were written.
pub(crate) fn assemble_all(
    recordings: &[Recording],
    look: Look,
    progress: &Progress,
) -> Vec<Assembly> {
    let count = |len: usize| progress.add(len as u64, 0);
    let split = |fragment: &Fragment| {
        if look == Look::Everywhere || !seems_foreign(fragment) {
            return fragment.pieces(count);
        }
        unsplit(fragment.content.bytes())
    };
    let assemble = |recording: &Recording| {
        let pieces: Vec<_> = recording.fragments.par_iter().map(split).collect();
        recording.assemble(&pieces)
    };
    recordings.par_iter().map(assemble).collect()
}

/// Whether a fragment shows no sign of our recorder. Looking for blocks in all of it would cost a tenth of the merge: the first pass, which
/// looks at each line anyway, tells whether there are some.
fn seems_foreign(fragment: &Fragment) -> bool {
    let bytes = fragment.content.bytes();
    fragment.header.is_none() && !hold_header(&bytes[..bytes.len().min(PART_BYTES)])
}

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
