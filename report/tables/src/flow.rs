//! Arrows: which slices they lead from and to.

use std::io;
use trace_store::sorter::{Record, Sorted};

/// What an event does with an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Start,
    Through,
    End,
}

/// An event of an arrow at a slice. In the order of these, those of one arrow are together, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowPoint {
    /// What tells the arrow from others.
    pub(crate) arrow: u64,
    pub(crate) ts_ns: i64,
    pub(crate) rank: i64,
    pub(crate) at: u64,
    pub(crate) step: Step,
    pub(crate) slice: i64,
    /// When the slice begins.
    pub(crate) slice_ns: i64,
}

impl Record for FlowPoint {}

/// An edge from a slice to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowEdge {
    pub(crate) slice_out: i64,
    pub(crate) slice_in: i64,
}

impl Record for FlowEdge {}

/// Calls `found` with each edge. A step leads on from itself, an end does not; what has not started leads nowhere. Of two slices Perfetto takes the one
/// that began first for the one that the arrow leaves.
pub(crate) fn edges(
    points: &Sorted<FlowPoint>,
    mut found: impl FnMut(FlowEdge) -> io::Result<()>,
) -> io::Result<()> {
    let mut last: Option<FlowPoint> = None;
    for point in points.iter().copied() {
        let from = last.filter(|last| last.arrow == point.arrow);
        match (point.step, from) {
            // Perfetto takes the first start of an arrow, and no second one.
            (Step::Start, None) => last = Some(point),
            (Step::Start, Some(_)) | (_, None) => {}
            (step, Some(from)) => {
                if step == Step::Through {
                    last = Some(point);
                }
                let (from, to) = match from.slice_ns <= point.slice_ns {
                    true => (from, point),
                    false => (point, from),
                };
                found(FlowEdge {
                    slice_out: from.slice,
                    slice_in: to.slice,
                })?;
            }
        }
    }
    Ok(())
}
