//! Links are numbered as they are made.

use super::records::{Link, OwnFlow, RequestReach};
use super::times::Times;

/// Makes the links of requests, and remembers how many there are and when.
#[derive(Default)]
pub(super) struct Numbers {
    /// Links, which is the number of the last one.
    pub(super) flows: u64,
    /// Links of requests without a flow of the program.
    pub(super) requests: u64,
    /// Links of requests with events before the program's flow.
    pub(super) leads: u64,
    /// When there are events of the merge's own flows.
    pub(super) times: Times,
}

impl Numbers {
    /// Returns the link of a request, if it may have arrows. Flows are numbered, because short ids make short lines.
    ///
    /// An arrow needs two events. One is enough if the program draws a flow that it may join.
    pub(super) fn link(&mut self, reach: &RequestReach, own: Option<OwnFlow>) -> Option<Link> {
        let RequestReach {
            first,
            second_ns,
            last,
        } = *reach;
        let has_events = *reach != RequestReach::NONE;
        if !(reach.is_chain() || own.is_some() && has_events) {
            return None;
        }
        // An arrow from the span in which the flow starts to itself would say nothing.
        let has_lead = |own: &OwnFlow| {
            second_ns < own.start_ns || first.ts_ns < own.start_ns && !first.holds_start(own)
        };
        let own = own.map(|own| OwnFlow {
            has_lead: has_lead(&own),
            ..own
        });
        self.flows += 1;
        match own {
            None => {
                self.requests += 1;
                self.times.add((first.ts_ns, last.0));
            }
            Some(own) if own.has_lead => {
                self.leads += 1;
                self.times.add((first.ts_ns, own.start_ns));
            }
            Some(_) => {}
        }
        Some(Link {
            flow: self.flows,
            first: first.place,
            last: last.1,
            own,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::program::styles::Style;
    use crate::link::records::{EventPlace, INSTANT, Mention};

    /// Returns a request with spans of 10 ns on thread 7, given by begin and place.
    fn request(events: &[(i64, u64)]) -> RequestReach {
        let mut reach = RequestReach::NONE;
        events.iter().for_each(|(ts_ns, place)| {
            reach.see(&Mention {
                ts_ns: *ts_ns,
                place: EventPlace(*place),
                thread: 7,
                end_ns: ts_ns + 10,
            });
        });
        reach
    }

    fn own(start_ns: i64, thread: u64) -> OwnFlow {
        OwnFlow {
            id: 5,
            style: Style(0),
            start_ns,
            end_ns: i64::MAX,
            thread,
            has_lead: false,
            is_elsewhere: false,
        }
    }

    #[test]
    fn a_request_has_a_number_if_it_has_two_events_or_one_that_joins_a_flow() {
        let mut numbers = Numbers::default();
        let mut flow = |own, events: &[_]| {
            let link = numbers.link(&request(events), own);
            link.map(|link| (link.flow, link.first.0, link.last.0))
        };
        let own = own(1, 0);
        assert_eq!(flow(None, &[(10, 4), (30, 8), (20, 6)]), Some((1, 4, 8)));
        assert_eq!(flow(None, &[(100, 4)]), None);
        assert_eq!(flow(None, &[]), None);
        assert_eq!(flow(Some(own), &[]), None);
        assert_eq!(flow(None, &[(60, 2), (50, 12)]), Some((2, 12, 2)));
        assert_eq!(flow(Some(own), &[(100, 4)]), Some((3, 4, 4)));
        assert_eq!((numbers.flows, numbers.requests), (3, 2));
        assert!(numbers.times.meet((10, 10)) && numbers.times.meet((55, 55)));
        assert!(!numbers.times.meet((31, 49)) && !numbers.times.meet((61, 120)));
    }

    #[test]
    fn arrows_lead_to_the_programs_flow_from_every_span_but_the_one_in_which_it_starts() {
        let lead = |own, events: &[_]| {
            let mut numbers = Numbers::default();
            let link = numbers.link(&request(events), Some(own)).unwrap();
            let has_lead = link.own.is_some_and(|own| own.has_lead);
            assert_eq!(numbers.leads, u64::from(has_lead));
            assert_eq!(numbers.times.meet((0, i64::MAX)), has_lead);
            has_lead
        };
        assert!(!lead(own(105, 7), &[(100, 4), (106, 6)]));
        assert!(lead(own(105, 7), &[(100, 4), (104, 6)]));
        // On another thread, and after the span.
        assert!(lead(own(105, 8), &[(100, 4)]) && lead(own(111, 7), &[(100, 4)]));
        assert!(!lead(own(100, 8), &[(100, 4)]));
        let mut instant = request(&[(100, 4)]);
        instant.first.end_ns = INSTANT;
        let link = Numbers::default().link(&instant, Some(own(105, 7)));
        assert!(link.unwrap().own.unwrap().has_lead);
    }
}
