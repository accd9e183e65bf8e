//! Links are numbered as they are made.

use super::records::{Link, Request, RequestReach};
use super::times::Times;

/// Makes the links of requests, and remembers how many there are and when.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) requests: u64,
    pub(super) times: Times,
}

impl Numbers {
    /// The link of a request if it is shown. Flows are numbered: short ids make short lines.
    ///
    /// An arrow needs two events, and a request that its recorder links has its arrows.
    pub(super) fn link(&mut self, request: &Request) -> Option<Link> {
        let RequestReach { first, last } = request.reach;
        if request.linked || !request.reach.is_chain() {
            return None;
        }
        self.requests += 1;
        self.times.add((first.0, last.0));
        Some(Link {
            key: request.key,
            flow: self.requests,
            first: first.1,
            last: last.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::records::EventPlace;

    fn request(key: u64, linked: bool, events: &[(i64, u64)]) -> Request {
        let mut reach = RequestReach::NONE;
        events
            .iter()
            .for_each(|at| reach.see((at.0, EventPlace(at.1))));
        Request {
            key,
            clock: 0,
            linked,
            reach,
        }
    }

    #[test]
    fn only_what_has_two_events_and_no_flow_gets_a_number() {
        let mut numbers = Numbers::default();
        let mut flow = |linked, events: &[_]| {
            let link = numbers.link(&request(9, linked, events));
            link.map(|link| (link.key, link.flow, link.first.0, link.last.0))
        };
        assert_eq!(
            flow(false, &[(10, 4), (30, 8), (20, 6)]),
            Some((9, 1, 4, 8))
        );
        assert_eq!(flow(true, &[(100, 4), (120, 8)]), None);
        assert_eq!(flow(false, &[(100, 4)]), None);
        assert_eq!(flow(false, &[]), None);
        assert_eq!(flow(false, &[(60, 2), (50, 12)]), Some((9, 2, 12, 2)));
        assert_eq!(numbers.requests, 2);
        assert!(numbers.times.meet((10, 10)) && numbers.times.meet((55, 55)));
        assert!(!numbers.times.meet((31, 49)) && !numbers.times.meet((100, 120)));
    }
}
