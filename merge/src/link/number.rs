//! Links are numbered as they are made.

use super::row::{Link, Reach, Request};
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
        let Reach { first, last } = request.reach;
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
