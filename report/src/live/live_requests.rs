//! The requests under way, and what has become of the others.

use super::figures::{Figures, each_figure};
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
/// Most requests under way. Of more, those of which nothing was heard for the longest time count as they are.
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
    heard: HashMap<u64, Heard>,
    folded: HashSet<u64>,
    folded_order: VecDeque<u64>,
    sums: RequestSums,
    /// What came of requests that were folded.
    pub(super) late: u64,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
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
        let heard = Heard {
            at: now,
            was_looked_at: false,
        };
        self.heard.insert(moment.request, heard);
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

    /// Folds the requests that are over.
    pub(super) fn fold(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (request, heard) in &mut self.heard {
            if heard.was_looked_at || now.duration_since(heard.at) < GRACE {
                continue;
            }
            heard.was_looked_at = true;
            if self.facts.is_over(*request) {
                over.push(*request);
            }
        }
        let too_many = self.heard.len().saturating_sub(over.len() + MOST);
        if too_many > 0 {
            let mut oldest: Vec<_> = self
                .heard
                .iter()
                .map(|(of, heard)| (heard.at, *of))
                .collect();
            oldest.sort_unstable();
            over.extend(oldest.iter().take(too_many).map(|(_, request)| request));
        }
        for request in over {
            self.fold_one(request);
        }
    }

    fn fold_one(&mut self, request: u64) {
        self.heard.remove(&request);
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
    fn take(&mut self, request: Request, gaps: Option<&super::histogram::Histogram>) {
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
    fn sort(&mut self) {
        let id = |request: &Request| request.request_id.clone();
        self.latest
            .sort_by_key(|one| (std::cmp::Reverse(one.finished_ns), id(one)));
        self.slowest
            .sort_by_key(|one| (std::cmp::Reverse(one.e2e_ns()), id(one)));
        self.latest.truncate(LISTED);
        self.slowest.truncate(LISTED);
    }
}
