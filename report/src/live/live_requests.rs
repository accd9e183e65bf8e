//! The requests under way, and what has become of the others.

use super::figures::{Figures, each_figure};
use super::histogram::Histogram;
use super::last_seconds::LastSeconds;
use super::token_gaps::TokenGaps;
use crate::fold::requests::RequestFacts;
use crate::gather::request_moment::RequestMoment;
use crate::gather::value_record::ValueRecord;
use crate::table::request::{Request, RequestStatus};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// How long an ended request waits for what other processes say of it: they are read one after the other.
const GRACE: Duration = Duration::from_secs(10);
/// Most requests under way. Of more, a tenth counts as it is: those of which nothing was said for the longest time.
const MOST: usize = 100_000;
/// Requests that are known to be folded, so that what comes late of them makes no new ones.
const FOLDED: usize = 1 << 14;
/// Requests that are listed.
const LISTED: usize = 20;

/// All requests so far.
#[derive(Debug, Default)]
pub(super) struct LiveRequests {
    facts: RequestFacts,
    /// By request and process, as tokens are sorted in a report.
    gaps: HashMap<u64, TokenGaps>,
    last_said: HashMap<u64, LastSaid>,
    folded: HashSet<u64>,
    folded_order: VecDeque<u64>,
    sums: RequestSums,
    /// What came of requests that were folded.
    pub(super) late: u64,
}

#[derive(Clone, Copy, Debug)]
struct LastSaid {
    at: Instant,
    /// Whether it was looked at since, and was not over.
    was_looked_at: bool,
}

/// What the requests come to.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestSums {
    pub(super) all: Figures,
    pub(super) last: LastSeconds,
    /// Those without an end in the trace.
    pub(super) unfinished: u64,
    pub(super) latest: Vec<Request>,
    pub(super) slowest: Vec<Request>,
}

impl LiveRequests {
    /// Notes the id of a request.
    pub(super) fn name(&mut self, request: u64, id: String) {
        if !self.folded.contains(&request) {
            self.facts.name(request, id);
        }
    }

    /// Takes what an event says.
    pub(super) fn take(&mut self, moment: RequestMoment, now: Instant) {
        if self.folded.contains(&moment.request) {
            self.late += 1;
            return;
        }
        let said = LastSaid {
            at: now,
            was_looked_at: false,
        };
        self.last_said.insert(moment.request, said);
        if self.last_said.len() > MOST {
            self.make_room();
        }
        if let Some(ValueRecord { of, ns }) = self.facts.take(moment) {
            let known = self.gaps.get_mut(&of);
            match known {
                Some(gaps) => gaps.take(ns),
                None => drop(self.gaps.insert(of, TokenGaps::new(ns))),
            }
        }
    }

    pub(super) fn seconds(&mut self) -> &mut LastSeconds {
        &mut self.sums.last
    }

    /// Folds the requests that are over, and of which nothing was said for a while.
    pub(super) fn fold(&mut self, now: Instant) {
        self.fold_those(|said| !said.was_looked_at && now.duration_since(said.at) >= GRACE);
    }

    /// Folds all requests that are over: nothing is said any more.
    pub(super) fn fold_all(&mut self) {
        self.fold_those(|_| true);
    }

    fn fold_those(&mut self, is_due: impl Fn(&LastSaid) -> bool) {
        let mut over = Vec::new();
        for (request, said) in &mut self.last_said {
            if is_due(said) {
                said.was_looked_at = true;
                if self.facts.is_over(*request) {
                    over.push(*request);
                }
            }
        }
        for request in over {
            self.fold_one(request);
        }
    }

    /// Folds those of which nothing was said for the longest time, as they are.
    fn make_room(&mut self) {
        let said = self.last_said.iter();
        let mut oldest: Vec<_> = said.map(|(of, said)| (said.at, *of)).collect();
        oldest.sort_unstable();
        for (_, request) in oldest.into_iter().take(MOST / 10) {
            self.fold_one(request);
        }
    }

    fn fold_one(&mut self, request: u64) {
        self.last_said.remove(&request);
        let Some(one) = self.facts.remove(request) else {
            return;
        };
        let row = one.token_row(request);
        let gaps = row.and_then(|row| self.gaps.get(&row));
        let gaps = gaps.map(|gaps| gaps.gaps.clone());
        for row in one.rows(request) {
            self.gaps.remove(&row);
        }
        if let Some(done) = one.request() {
            self.sums.take(done, gaps.as_ref());
        }
        self.folded.insert(request);
        self.folded_order.push_back(request);
        if self.folded_order.len() > FOLDED {
            let oldest = self.folded_order.pop_front();
            oldest.map(|oldest| self.folded.remove(&oldest));
        }
    }

    /// What those come to that were folded: none of these figures ever becomes smaller.
    pub(super) fn folded(&self) -> &Figures {
        &self.sums.all
    }

    /// What they come to, those under way as they are.
    pub(super) fn sums(&self) -> RequestSums {
        let mut sums = self.sums.clone();
        for (request, one) in self.facts.each() {
            let gaps = one.token_row(request).and_then(|row| self.gaps.get(&row));
            if let Some(done) = one.clone().request() {
                sums.take(done, gaps.map(|gaps| &gaps.gaps));
            }
        }
        sums.sort();
        sums
    }
}

impl RequestSums {
    pub(super) fn take(&mut self, request: Request, gaps: Option<&Histogram>) {
        let (all, last) = (&mut self.all, &mut self.last);
        each_figure(&request, gaps, |moment_ns, put| {
            put(all);
            if let Some(second) = moment_ns.and_then(|ns| last.at(ns)) {
                put(&mut second.figures);
            }
        });
        if request.status == RequestStatus::Unfinished {
            self.unfinished += 1;
            return;
        }
        self.latest.push(request.clone());
        self.slowest.push(request);
        if self.latest.len() > 4 * LISTED {
            self.sort();
        }
    }

    /// Keeps the latest and the slowest ones.
    pub(super) fn sort(&mut self) {
        let id = |request: &Request| request.request_id.clone();
        self.latest
            .sort_by_key(|one| (std::cmp::Reverse(one.finished_ns), id(one)));
        self.slowest
            .sort_by_key(|one| (std::cmp::Reverse(one.e2e_ns()), id(one)));
        self.latest.truncate(LISTED);
        self.slowest.truncate(LISTED);
    }
}
