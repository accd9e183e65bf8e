//! Edges between slices, from the events of flows. A flow with one id is called an arrow here.

use std::io;
use trace_store::sorter::{Record, Sorted};

/// Role of an event in its arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Start,
    Through,
    End,
}

/// An event of an arrow at a slice. Points are sorted by arrow and then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowPoint {
    /// Hash that identifies the arrow.
    pub(crate) arrow: u64,
    pub(crate) ts_ns: i64,
    pub(crate) rank: i64,
    pub(crate) at: u64,
    pub(crate) step: Step,
    pub(crate) slice: i64,
    /// Begin of the slice.
    pub(crate) slice_ns: i64,
}

impl Record for FlowPoint {}

/// An edge from one slice to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowEdge {
    pub(crate) slice_out: i64,
    pub(crate) slice_in: i64,
}

impl Record for FlowEdge {}

/// Calls `found` with each edge. Steps and ends without a start have no edge. An edge leads from a start or step to the next step or end. As in Perfetto, it
/// always begins at the slice that began first.
pub(crate) fn edges(
    points: &Sorted<FlowPoint>,
    mut found: impl FnMut(FlowEdge) -> io::Result<()>,
) -> io::Result<()> {
    let mut last: Option<FlowPoint> = None;
    for point in points.iter().copied() {
        let from = last.filter(|last| last.arrow == point.arrow);
        match (point.step, from) {
            // Perfetto ignores all starts of an arrow except for the first.
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
