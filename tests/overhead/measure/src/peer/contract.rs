//! What a recorder does to be measured.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::{Beat, Kind};

/// Spans under one root of the recorders that report by roots: fastrace takes at most 10,240 of them, puffin hands over one frame.
const SPANS_PER_ROOT: u64 = 1_000;

/// A recorder that a child process can measure.
pub trait Peer: Sync {
    /// Does one event of the kind for each step. Those that are not ours have the kinds of [`Kind::SPANS`].
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat);
    /// Waits until what was recorded is written.
    fn settle(&self);
    /// Ends the recording as its authors recommend, and returns its file if it has one.
    fn finish(self) -> Option<PathBuf>;
}

/// Does `event` for each step.
#[inline(always)]
pub fn each(steps: Range<u64>, beat: &mut impl Beat, mut event: impl FnMut(u64)) {
    for step in steps {
        beat.before(step);
        event(step);
        beat.after(step);
    }
}

/// Cuts the steps into those of one root each.
pub(super) fn roots(steps: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut from = steps.start;
    std::iter::from_fn(move || {
        let to = steps.end.min(from.saturating_add(SPANS_PER_ROOT));
        let root = from..to;
        from = to;
        (!root.is_empty()).then_some(root)
    })
}

pub(super) fn create(directory: &Path) -> Result<(File, PathBuf), String> {
    let path = directory.join("peer.json");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_cover_every_step() {
        assert_eq!(
            roots(5..2_100).collect::<Vec<_>>(),
            [5..1_005, 1_005..2_005, 2_005..2_100]
        );
        assert_eq!(roots(3..3).count(), 0);
    }
}
