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

/// Longest text of the whole times of a cut span.
pub(super) const WHOLE_TIMES: usize =
    br#","sa_whole_ts":18446744073709551.615,"sa_whole_dur":18446744073709551.615"#.len();
/// What the mark of a span that crosses an edge takes.
pub(super) const MARK: usize = br#","args":{"sa_cut":true}"#.len();
