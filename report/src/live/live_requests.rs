//! Requests in flight, and the results of the ended ones.

use super::figures::{Figures, each_figure};
use super::last_seconds::LastSeconds;
use super::past::Past;
use crate::fold::requests::life::Life;
use crate::fold::requests::life_splitter::{APART_NS, LifeSplitter};
use crate::gather::chunk_records::ChunkRecords;
use crate::gather::reasons::Reasons;
use crate::gather::request_moment::{RequestMoment, RequestToken};
use crate::gather::request_output::{Pauses, RequestOutput};
use crate::table::{Request, RequestStatus};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Time for which an ended request waits for events of other processes, because processes are read one after another.
const GRACE: Duration = Duration::from_secs(10);
/// The same time on the trace's clock, for ids that are used again and again.
const GRACE_NS: i64 = 10_000_000_000;
/// Maximum number of ids in use. Beyond it, the tenth of them that had no event for the longest time is folded.
const MOST: usize = 100_000;
/// Minimum number of events of one id, moments and tokens, at which its ended requests are folded early.
const MANY_EVENTS: usize = 64;
/// Maximum number of moments of one id. Beyond it, its requests are folded as they are.
const MOST_MOMENTS: usize = 1 << 16;
/// Maximum number of tokens of one id. It is far more than any engine produces for one request.
const MOST_TOKENS: usize = 1 << 18;
/// Number of folded ids that are remembered, so that late events of them do not start a new request.
const FOLDED: usize = 1 << 14;
/// Number of requests in each list.
const LISTED: usize = 20;

/// All requests so far.
#[derive(Debug, Default)]
pub(super) struct LiveRequests {
    open: HashMap<u64, OpenId>,
    /// End of the last folded request, by hash of its id.
    folded: HashMap<u64, i64>,
    folded_oldest_first: VecDeque<u64>,
    outputs: HashMap<u64, LastOutput>,
    pauses: Pauses,
    reasons: Reasons,
    newest_ns: i64,
    sums: RequestSums,
    /// Number of events that came after their request was folded.
    pub(super) late: u64,
}

/// Events with one id that are not folded yet. A token needs 24 bytes, far less than its keys and values need in the
/// engine.
#[derive(Clone, Debug)]
struct OpenId {
    id: String,
    moments: Vec<RequestMoment>,
    tokens: Vec<RequestToken>,
    last_event_at: Instant,
    /// True if the id was checked since its last event and its request was still open.
    was_checked: bool,
    /// Number of events at which ended requests are folded early.
    fold_at: usize,
}

/// Last output of a request.
#[derive(Clone, Copy, Debug)]
struct LastOutput {
    engine_ns: i64,
    ts_ns: i64,
    at: Instant,
}

/// Sums over requests.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestSums {
    pub(super) all: Figures,
    pub(super) last: LastSeconds,
    pub(super) past: Past,
    /// Number of requests without an end in the trace.
    pub(super) unfinished: u64,
    /// Number of requests that started under an id that was still in use.
    pub(super) mixed: u64,
    /// True if a frontend listed the outputs of its steps. The lists include every token, so recorded tokens would
    /// count twice.
    has_outputs: bool,
    pub(super) latest: Vec<Request>,
    pub(super) slowest: Vec<Request>,
}

impl OpenId {
    fn new(id: String, now: Instant) -> OpenId {
        OpenId {
            id,
            moments: Vec::new(),
            tokens: Vec::new(),
            last_event_at: now,
            was_checked: false,
            fold_at: MANY_EVENTS,
        }
    }

    /// Returns the number of events that are stored for this id.
    fn events(&self) -> usize {
        self.moments.len() + self.tokens.len()
    }

    /// Builds the requests with this id from the events so far. There are several if the program used the id again.
    fn lives(&mut self) -> Vec<Life> {
        // The events are nearly sorted, because each process writes its events in order.
        self.moments.sort();
        self.tokens.sort();
        all_lives(&self.moments, &self.tokens)
    }

    /// Returns true if the last request with this id has ended.
    fn is_over(&mut self, reasons: &Reasons) -> bool {
        let last = self.lives().pop();
        let last = last.and_then(|life| life.request(&self.id, reasons));
        last.is_some_and(|request| request.status != RequestStatus::Unfinished)
    }
}

impl LiveRequests {
    /// Adds the events of requests.
    pub(super) fn add_records(&mut self, records: &mut ChunkRecords, now: Instant) {
        let reasons = self.reasons.merge(std::mem::take(&mut records.reasons));
        let names = std::mem::take(&mut records.requests);
        for mut moment in records.moments.drain(..) {
            moment.args.reason = reasons[moment.args.reason as usize];
            self.newest_ns = self.newest_ns.max(moment.ts_ns);
            let is_begin = moment.kind.is_begin();
            if let Some(open) = self.open((moment.request, moment.ts_ns), is_begin, &names, now) {
                open.moments.push(moment);
            }
        }
        for token in records.tokens.drain(..) {
            if let Some(open) = self.open((token.request, token.ns), false, &names, now) {
                open.tokens.push(token);
            }
        }
        self.pauses.merge(std::mem::take(&mut records.pauses));
        for output in records.outputs.drain(..) {
            self.add_output(output, now);
        }
        self.pauses.keep_last();
    }

    /// Returns the entry of an event's id, or `None` if the event belongs to a folded request.
    fn open(
        &mut self,
        (request, ns): (u64, i64),
        is_begin: bool,
        names: &HashMap<u64, String>,
        now: Instant,
    ) -> Option<&mut OpenId> {
        let is_new = !self.open.contains_key(&request);
        if let Some(end_ns) = self.folded.get(&request) {
            let is_soon = ns.saturating_sub(*end_ns) <= APART_NS;
            if ns < *end_ns || is_new && !is_begin && is_soon {
                self.late += 1;
                return None;
            }
        }
        if is_new && self.open.len() >= MOST {
            self.make_room();
        }
        let open = self.open.entry(request).or_insert_with(|| {
            let id = names.get(&request).cloned();
            OpenId::new(id.unwrap_or_default(), now)
        });
        (open.last_event_at, open.was_checked) = (now, false);
        Some(open)
    }

    /// Adds an output (new tokens of a request). The time since the previous output of its request is counted at once,
    /// unless recording was paused in between.
    fn add_output(&mut self, output: RequestOutput, now: Instant) {
        self.sums.has_outputs = true;
        let last = LastOutput {
            engine_ns: output.engine_ns,
            ts_ns: output.ts_ns,
            at: now,
        };
        if let Some(before) = self.outputs.insert(output.key, last) {
            let (from_ns, to_ns) = (before.ts_ns, output.ts_ns);
            if self.pauses.interrupt(output.process, from_ns, to_ns) {
                return;
            }
            let ns = output.engine_ns.saturating_sub(before.engine_ns).max(0);
            self.sums.all.itl.add_value(ns);
            if let Some(second) = self.sums.last.second_at(output.ts_ns) {
                second.figures.itl.add_value(ns);
            }
        } else if self.outputs.len() > MOST {
            let outputs = self.outputs.iter();
            for key in oldest_tenth(outputs.map(|(key, last)| (last.at, *key))) {
                self.outputs.remove(&key);
            }
        }
    }

    pub(super) fn seconds(&mut self) -> &mut LastSeconds {
        &mut self.sums.last
    }

    pub(super) fn past(&mut self) -> &mut Past {
        &mut self.sums.past
    }

    /// Adds the requests that have ended and had no event for a while to the sums, and drops their events. Requests
    /// under an id with very many events are added earlier.
    pub(super) fn fold(&mut self, now: Instant) {
        self.fold_due(|open| !open.was_checked && now.duration_since(open.last_event_at) >= GRACE);
        let old_ns = self.newest_ns.saturating_sub(GRACE_NS);
        let (mut ended, mut full) = (Vec::new(), Vec::new());
        let open = self.open.iter_mut();
        for (request, open) in open.filter(|(_, open)| open.events() >= open.fold_at) {
            let folded = fold_ended(open, old_ns, &self.reasons, &mut self.sums);
            ended.extend(folded.map(|end_ns| (*request, end_ns)));
            if open.moments.len() >= MOST_MOMENTS || open.tokens.len() >= MOST_TOKENS {
                full.push(*request);
            }
        }
        ended
            .into_iter()
            .for_each(|(request, end_ns)| self.record_folded(request, end_ns));
        full.into_iter().for_each(|request| self.fold_one(request));
    }

    /// Adds all requests that have ended to the sums, and drops their events. It is called when no more events will
    /// come.
    pub(super) fn fold_all(&mut self) {
        self.fold_due(|_| true);
    }

    fn fold_due(&mut self, is_due: impl Fn(&OpenId) -> bool) {
        let mut over = Vec::new();
        for (request, open) in &mut self.open {
            if is_due(open) {
                open.was_checked = true;
                if open.is_over(&self.reasons) {
                    over.push(*request);
                }
            }
        }
        over.into_iter().for_each(|request| self.fold_one(request));
    }

    /// Adds the requests of some ids to the sums, whether they have ended or not, and drops their events. It chooses
    /// the tenth of all ids that had no event for the longest time.
    fn make_room(&mut self) {
        let open = self.open.iter();
        for request in oldest_tenth(open.map(|(request, open)| (open.last_event_at, *request))) {
            self.fold_one(request);
        }
    }

    fn fold_one(&mut self, request: u64) {
        let Some(mut open) = self.open.remove(&request) else {
            return;
        };
        let lives = open.lives();
        let moments = open.moments.last().map(|moment| moment.ts_ns);
        let tokens = open.tokens.last().map(|token| token.ns);
        let last_ns = moments.max(tokens).unwrap_or(i64::MIN);
        let end_ns = lives.last().and_then(Life::end_ns).unwrap_or(last_ns);
        for life in lives {
            self.sums.add_life(&life, &open.id, &self.reasons);
        }
        self.record_folded(request, end_ns);
    }

    fn record_folded(&mut self, request: u64, end_ns: i64) {
        if self.folded.insert(request, end_ns).is_none() {
            self.folded_oldest_first.push_back(request);
        }
        if self.folded_oldest_first.len() > FOLDED {
            let oldest = self.folded_oldest_first.pop_front();
            oldest.map(|oldest| self.folded.remove(&oldest));
        }
    }

    /// Returns the sums over folded requests, whose events are no longer kept. None of these figures ever decreases.
    pub(super) fn folded(&self) -> &Figures {
        &self.sums.all
    }

    /// Returns the sums over all requests, including the current state of the ones in flight.
    pub(super) fn sums(&self) -> RequestSums {
        let mut sums = self.sums.clone();
        for open in self.open.values() {
            for life in open.clone().lives() {
                sums.add_life(&life, &open.id, &self.reasons);
            }
        }
        sums.sort();
        sums
    }
}

/// Returns the requests with one id, from sorted moments and tokens.
fn all_lives(moments: &[RequestMoment], tokens: &[RequestToken]) -> Vec<Life> {
    let mut lives = Vec::new();
    let Ok(()) = LifeSplitter::each(moments, tokens, |life| {
        lives.push(life);
        Ok::<(), Infallible>(())
    });
    lives
}

/// Returns the keys with the oldest times, at most a tenth of the maximum number of ids in use.
fn oldest_tenth(all: impl Iterator<Item = (Instant, u64)>) -> Vec<u64> {
    let mut all: Vec<(Instant, u64)> = all.collect();
    all.sort_unstable();
    let tenth = all.into_iter().take(MOST / 10);
    tenth.map(|(_, key)| key).collect()
}

/// Adds the requests of an id that ended before `old_ns`, except for its last request, to the sums, and drops their
/// events. Returns the end in ns of the last request that was added, or `None` if there was none.
fn fold_ended(
    open: &mut OpenId,
    old_ns: i64,
    reasons: &Reasons,
    sums: &mut RequestSums,
) -> Option<i64> {
    let mut lives = open.lives();
    let is_old = |life: &Life| life.end_ns().is_some_and(|end_ns| end_ns < old_ns);
    lives.pop();
    let old = lives.iter().position(|life| !is_old(life));
    lives.truncate(old.unwrap_or(lives.len()));
    let end_ns = lives.last().and_then(Life::end_ns);
    if let Some(end_ns) = end_ns {
        // The end of a span is a moment at this time, and so may be the start of the next request.
        let is_next = |moment: &RequestMoment| moment.ts_ns >= end_ns && moment.kind.is_begin();
        let next = open.moments.iter().position(is_next);
        let next = next.unwrap_or(open.moments.len());
        let next_ns = open.moments.get(next).map_or(end_ns, |moment| moment.ts_ns);
        let moments: Vec<RequestMoment> = open.moments.drain(..next).collect();
        let before = open.tokens.partition_point(|token| token.ns < next_ns);
        let tokens: Vec<RequestToken> = open.tokens.drain(..before).collect();
        for life in all_lives(&moments, &tokens) {
            sums.add_life(&life, &open.id, reasons);
        }
    }
    open.fold_at = (2 * open.events()).clamp(MANY_EVENTS, MOST_MOMENTS);
    end_ns
}

impl RequestSums {
    fn add_life(&mut self, life: &Life, id: &str, reasons: &Reasons) {
        self.mixed += life.mixed();
        if let Some(request) = life.request(id, reasons) {
            let tokens: &[i64] = if self.has_outputs { &[] } else { life.tokens() };
            self.add_request(request, tokens);
        }
    }

    /// Adds a request and the times of its tokens.
    pub(super) fn add_request(&mut self, request: Request, tokens: &[i64]) {
        let (all, last) = (&mut self.all, &mut self.last);
        each_figure(&request, tokens, |moment_ns, add| {
            add(all);
            if let Some(second) = moment_ns.and_then(|ns| last.second_at(ns)) {
                add(&mut second.figures);
            }
        });
        self.past.add_request(&request);
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

    /// Sorts the lists of the latest and the slowest requests, and cuts them to the length that live views show. The
    /// newest and the slowest come first.
    pub(super) fn sort(&mut self) {
        let id = |request: &Request| request.request_id.to_string();
        self.latest
            .sort_by_key(|one| (std::cmp::Reverse(one.finished_ns), id(one)));
        self.slowest
            .sort_by_key(|one| (std::cmp::Reverse(one.e2e_ns()), id(one)));
        self.latest.truncate(LISTED);
        self.slowest.truncate(LISTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::request_moment::RequestArgs;
    use crate::gather::request_moment::{MomentKind, request_key};
    use std::cmp::Reverse;

    const MS: i64 = 1_000_000;

    fn moment(process: u32, kind: MomentKind, at_ms: i64) -> RequestMoment {
        RequestMoment {
            request: request_key("r", 0),
            ts_ns: at_ms * MS,
            kind,
            end_ns: Reverse(i64::MAX),
            process,
            tag: 0,
            args: RequestArgs::default(),
        }
    }

    /// Returns the events of a request that takes 9 ms, for the frontend and for the engine.
    fn request(from_ms: i64) -> [Vec<RequestMoment>; 2] {
        let frontend = RequestMoment {
            end_ns: Reverse((from_ms + 9) * MS),
            ..moment(1, MomentKind::Http, from_ms)
        };
        let engine = [
            moment(2, MomentKind::Queued, from_ms + 1),
            moment(2, MomentKind::Scheduled, from_ms + 3),
            moment(2, MomentKind::FirstToken, from_ms + 5),
            moment(2, MomentKind::Finished, from_ms + 8),
        ];
        [vec![frontend], engine.to_vec()]
    }

    fn add_moments(requests: &mut LiveRequests, moments: Vec<RequestMoment>, now: Instant) {
        let mut records = ChunkRecords {
            moments,
            ..ChunkRecords::default()
        };
        records.requests.insert(request_key("r", 0), "r".to_owned());
        requests.add_records(&mut records, now);
    }

    /// The engine's events are read first, and one event comes late.
    #[test]
    fn an_id_is_used_again_while_it_is_open_and_after_it_was_folded() {
        let (mut requests, begin) = (LiveRequests::default(), Instant::now());
        let rounds = [request(100), request(200)];
        for process in [1, 0] {
            for round in &rounds {
                add_moments(&mut requests, round[process].clone(), begin);
            }
        }
        let sums = requests.sums();
        assert_eq!((sums.all.ok, sums.all.queue.n, sums.mixed), (2, 2, 0));
        assert_eq!(sums.all.queue.sum_ns, 4 * MS);
        requests.fold(begin + GRACE);
        assert_eq!((requests.folded().ok, requests.open.len()), (2, 0));
        // A late event, then another request with the same id.
        let late = moment(2, MomentKind::Answered, 208);
        add_moments(&mut requests, vec![late], begin);
        assert_eq!((requests.late, requests.open.len()), (1, 0));
        for moments in request(300).into_iter().rev() {
            add_moments(&mut requests, moments, begin);
        }
        requests.fold_all();
        assert_eq!((requests.folded().ok, requests.late), (3, 1));
        assert_eq!(requests.folded().e2e.sum_ns, 27 * MS);
    }

    /// An id that is always in use must not accumulate events without limit.
    #[test]
    fn a_constant_id_needs_only_memory_for_its_last_seconds() {
        let (mut requests, now) = (LiveRequests::default(), Instant::now());
        let rounds = 20_000;
        let mut most = 0;
        for round in 0..rounds {
            for moments in request(10 * round) {
                add_moments(&mut requests, moments, now);
            }
            requests.fold(now);
            let open = requests.open.values().next();
            most = most.max(open.map_or(0, |open| open.moments.len()));
        }
        // Ten seconds contain 1,000 requests, of five moments each.
        assert!(most < 3 * 5_000, "{most}");
        let sums = requests.sums();
        assert_eq!((sums.all.ok, sums.mixed), (rounds.unsigned_abs(), 0));
        assert!(requests.folded().ok > 17_000);
        requests.fold_all();
        assert_eq!(requests.folded().ok, rounds.unsigned_abs());
    }

    /// An engine may record tokens under an id whose end it never records.
    #[test]
    fn tokens_of_an_id_that_never_ends_are_bounded() {
        let (mut requests, now) = (LiveRequests::default(), Instant::now());
        let mut most = 0;
        for round in 0..1 << 10 {
            let token = |nth: i64| RequestToken {
                request: request_key("r", 0),
                ns: (round * 1_000 + nth) * MS,
                process: 2,
            };
            let mut records = ChunkRecords {
                tokens: (0..1_000).map(token).collect(),
                ..ChunkRecords::default()
            };
            requests.add_records(&mut records, now);
            requests.fold(now);
            let open = requests.open.values().next();
            most = most.max(open.map_or(0, |open| open.tokens.len()));
        }
        assert!(most < MOST_TOKENS, "{most}");
    }
}
