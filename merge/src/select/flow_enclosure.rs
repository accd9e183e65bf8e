//! Which flow events lie in spans that are shown. A viewer ties a flow event to the span around it, and takes one without a span for an error.

use crate::span::group_key::{Choice, GroupEvent, GroupKey, ThreadNumber};
use crate::span::groups::ShownSpan;
use crate::store::sorter::{Record, Sorter};
use std::collections::HashSet;
use std::io;

/// A span that is shown or a flow event, on its row. Its order is that of the fields: a span before what happens when it begins.
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

/// Adds the flow events that lie in spans to `covered`, but those of `others`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::chunk::EventRef;
    use crate::pass::labels::Labels;
    use crate::span::group_key::GroupRole;

    fn flow(row: ThreadNumber, at_ns: i64, nth: u32) -> GroupEvent<Choice> {
        GroupEvent {
            whole: GroupKey::Flow(5, 6),
            at_ns,
            at: EventRef { chunk: 1, nth },
            labels: Labels::default(),
            role: if nth.is_multiple_of(2) {
                GroupRole::Start
            } else {
                GroupRole::Next
            },
            more: Choice {
                row,
                wanted: true,
                inside: true,
            },
        }
    }

    #[test]
    fn what_lies_in_a_span_is_covered() {
        let folder = std::env::temp_dir();
        let (mut spots, mut found) = (Sorter::new(&folder), Sorter::new(&folder));
        for span in [(1, (10, 20)), (1, (12, 15)), (2, (0, 11))] {
            spots.push(Spot::of_span(span)).unwrap();
        }
        let flows = [(1, 9), (1, 10), (1, 19), (1, 20), (2, 10), (3, 10)];
        for ((row, at_ns), nth) in flows.into_iter().zip(0..) {
            spots.push(Spot::of_flow(flow(row, at_ns, nth))).unwrap();
        }
        let spots = spots.finish().unwrap();
        covered(&spots, &HashSet::new(), &mut found).unwrap();
        let mut nothing = Sorter::new(&folder);
        covered(&spots, &HashSet::from([5]), &mut nothing).unwrap();
        assert_eq!(nothing.finish().unwrap().len(), 0, "of another request");
        assert_eq!(
            *found.finish().unwrap(),
            [flow(1, 10, 1), flow(2, 10, 4), flow(1, 19, 2)],
            "in the order of the flow"
        );
    }
}
