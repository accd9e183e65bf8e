//! Reports inputs that another program changed while they were merged.

use crate::app::report::Report;
use crate::event::damage::Kind;
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Text of the damage entry.
pub(super) const CHANGED: &str = "truncated or rewritten during the merge";

/// Adds a damage entry for each fragment that was changed. Appending is not a change.
pub(super) fn add_changes(
    recordings: &[Recording],
    sources: &[Source<'_>],
    chunks: &[Chunk],
    report: &mut Report,
) {
    let fragments = recordings.iter().enumerate();
    let fragments = fragments.flat_map(|(recording, of)| {
        let segments = of.fragments.iter().enumerate();
        segments.map(move |(segment, fragment)| ((recording, segment), fragment))
    });
    let moved: Vec<_> = fragments
        .filter(|(_, fragment)| fragment.may_have_changed())
        .collect();
    if moved.is_empty() {
        return;
    }
    let numbers: BTreeSet<_> = moved.iter().map(|(at, _)| *at).collect();
    let differing = differing_segments(&numbers, sources, chunks);
    let has_changed = |(at, fragment): &((usize, usize), &Fragment)| {
        fragment.content.is_cut()
            || fragment.watch.removed_lines() > 0
            || differing.contains(at)
            || fragment.blocks_have_changed()
    };
    let changed: Vec<_> = moved.into_par_iter().filter(has_changed).collect();
    for (_, fragment) in changed {
        let what = match fragment.watch.removed_lines() {
            0 => CHANGED.to_owned(),
            1 => format!("{CHANGED}; 1 line was no longer an event"),
            lines => format!("{CHANGED}; {lines} lines were no longer events"),
        };
        report
            .damage
            .add(&fragment.path, 0, Kind::Changed, Some(what));
    }
}

/// Returns the segments, as (recording, segment), in which lines outside of blocks have changed since the first pass.
fn differing_segments(
    moved: &BTreeSet<(usize, usize)>,
    sources: &[Source<'_>],
    chunks: &[Chunk],
) -> BTreeSet<(usize, usize)> {
    let differs = |chunk: &Chunk| {
        let source = &sources[chunk.source];
        let at = (source.recording, source.segment?);
        let differs = moved.contains(&at) && chunk.has_changed(source.bytes);
        differs.then_some(at)
    };
    chunks.par_iter().filter_map(differs).collect()
}
