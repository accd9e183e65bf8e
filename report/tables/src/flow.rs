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
    points.each(|point| {
        let from = last.filter(|last| last.arrow == point.arrow);
        match (point.step, from) {
            // Perfetto takes the first start of an arrow, and no second one.
            (Step::Start, None) => last = Some(point),
            (Step::Start, Some(_)) | (_, None) => {}
            (step, Some(from)) => {
                if step == Step::Through {
                    last = Some(point);
                }
                let is_forward = from.slice_ns <= point.slice_ns;
                let (from, to) = if is_forward {
                    (from, point)
                } else {
                    (point, from)
                };
                found(FlowEdge {
                    slice_out: from.slice,
                    slice_in: to.slice,
                })?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(arrow: u64, ts_ns: i64, step: Step, slice: i64) -> FlowPoint {
        FlowPoint {
            arrow,
            ts_ns,
            rank: -1,
            at: 9,
            step,
            slice,
            slice_ns: slice,
        }
    }

    #[test]
    fn a_step_leads_on_and_an_end_does_not() {
        let mut points = vec![
            point(1, 0, Step::Start, 10),
            point(1, 1, Step::Start, 11),
            point(1, 2, Step::Through, 12),
            point(1, 3, Step::End, 13),
            point(1, 4, Step::End, 14),
            point(2, 0, Step::End, 20),
            point(2, 1, Step::Start, 21),
            point(3, 0, Step::Start, 31),
            point(3, 1, Step::Through, 30),
            point(3, 2, Step::End, 32),
        ];
        points.sort_unstable();
        let mut found = Vec::new();
        edges(&Sorted::Memory(points), |edge| {
            found.push((edge.slice_out, edge.slice_in));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [(10, 12), (12, 13), (12, 14), (30, 31), (30, 32)]);
    }
}
