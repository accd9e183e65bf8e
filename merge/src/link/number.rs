//! Links are numbered as they are made.

use super::records::{Link, OwnFlow, Request, RequestReach};
use super::times::Times;

/// Makes the links of requests, and remembers how many there are and when.
#[derive(Default)]
pub(super) struct Numbers {
    /// Links, which is the number of the last one.
    pub(super) flows: u64,
    /// Links of requests without a flow of the program.
    pub(super) requests: u64,
    pub(super) times: Times,
}

impl Numbers {
    /// Returns the link of a request, if it may have arrows. Flows are numbered, because short ids make short lines.
    ///
    /// An arrow needs two events. One is enough if the program draws a flow that it may join.
    pub(super) fn link(&mut self, request: &Request, own: Option<OwnFlow>) -> Option<Link> {
        let RequestReach {
            first,
            second_ns,
            last,
        } = request.reach;
        let has_events = request.reach != RequestReach::NONE;
        if !(request.reach.is_chain() || own.is_some() && has_events) {
            return None;
        }
        self.flows += 1;
        self.requests += u64::from(own.is_none());
        self.times.add((first.0, last.0));
        Some(Link {
            key: request.key,
            flow: self.flows,
            first: first.1,
            last: last.1,
            own: own.map(|own| OwnFlow {
                has_lead: second_ns < own.start_ns,
                ..own
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::records::EventPlace;

    fn request(key: u64, events: &[(i64, u64)]) -> Request {
        let mut reach = RequestReach::NONE;
        events
            .iter()
            .for_each(|at| reach.see((at.0, EventPlace(at.1))));
        Request {
            key,
            clock: 0,
            reach,
        }
    }

    #[test]
    fn a_request_has_a_number_if_it_has_two_events_or_one_that_joins_a_flow() {
        let mut numbers = Numbers::default();
        let own = OwnFlow {
            id: 5,
            style: crate::link::styles::Style(0),
            start_ns: 1,
            thread: 0,
            has_lead: false,
        };
        let mut flow = |own, events: &[_]| {
            let link = numbers.link(&request(9, events), own);
            link.map(|link| (link.key, link.flow, link.first.0, link.last.0))
        };
        assert_eq!(flow(None, &[(10, 4), (30, 8), (20, 6)]), Some((9, 1, 4, 8)));
        assert_eq!(flow(None, &[(100, 4)]), None);
        assert_eq!(flow(None, &[]), None);
        assert_eq!(flow(Some(own), &[]), None);
        assert_eq!(flow(None, &[(60, 2), (50, 12)]), Some((9, 2, 12, 2)));
        assert_eq!(flow(Some(own), &[(100, 4)]), Some((9, 3, 4, 4)));
        assert_eq!((numbers.flows, numbers.requests), (3, 2));
        assert!(numbers.times.meet((10, 10)) && numbers.times.meet((55, 55)));
        assert!(!numbers.times.meet((31, 49)) && !numbers.times.meet((101, 120)));
    }
}
