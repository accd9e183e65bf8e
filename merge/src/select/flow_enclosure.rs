//! Finds flow events that are in spans that are shown. A viewer binds a flow event to the span
//! around it, and reports an error if there is none.

use crate::span::group_key::{Choice, GroupEvent, GroupKey, ThreadNumber};
use crate::span::groups::ShownSpan;
use crate::store::sorter::{Record, Sorter};
use std::collections::HashSet;
use std::io;

/// A span that is shown or a flow event, on its thread. The order is by the fields, so a span comes
/// before events at its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    row: ThreadNumber,
    at_ns: i64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Span { end_ns: i64 },
    Flow(GroupEvent<Choice>),
}

impl Spot {
    pub(crate) fn of_span((row, (at_ns, end_ns)): ShownSpan) -> Spot {
        let what = What::Span { end_ns };
        Spot { row, at_ns, what }
    }

    pub(crate) fn of_flow(event: GroupEvent<Choice>) -> Spot {
        Spot {
            row: event.more.row,
            at_ns: event.at_ns,
            what: What::Flow(event),
        }
    }
}

/// Adds the flow events that are in spans to `covered`, except for flows in `others`.
pub(crate) fn covered(
    spots: &[Spot],
    others: &HashSet<u64>,
    covered: &mut Sorter<'_, GroupEvent<Choice>>,
) -> io::Result<()> {
    for row in spots.chunk_by(|one, next| one.row == next.row) {
        let mut until_ns = i64::MIN;
        for spot in row {
            match spot.what {
                What::Span { end_ns } => until_ns = until_ns.max(end_ns),
                What::Flow(event) if spot.at_ns < until_ns => match event.whole {
                    GroupKey::Flow(id, _) if others.contains(&id) => {}
                    _ => covered.push(event)?,
                },
                What::Flow(_) => {}
            }
        }
    }
    Ok(())
}

impl Record for Spot {}
