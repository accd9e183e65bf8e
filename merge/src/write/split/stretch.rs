//! A stretch of the trace, which becomes a part.

use crate::event::edges::Edges;

/// The least text that shows all of the trace between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartStretch {
    pub(super) edges: Edges,
    /// At most so long.
    pub(super) bytes: u64,
    pub(super) events: u64,
}

/// What the mark of a span that crosses an edge takes.
pub(super) const MARK: usize = br#","args":{"sa_cut":true}"#.len();
