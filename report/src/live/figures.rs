//! Figures of requests, of the whole run or of a part of its time.

use super::histogram::{Histogram, REQUEST_BOUNDS, TOKEN_BOUNDS, TTFT_BOUNDS};
use crate::table::{Metric, Request, RequestStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of distinct reasons. All further ones become `other`.
const MOST_REASONS: usize = 16;

/// Counts and times of requests, as [`Request`] defines them. Each figure counts at its own time: a first token may
/// fall into one second and the end of the request into another.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Number of requests that arrived.
    pub arrived: u64,
    /// Number of requests that were answered.
    pub ok: u64,
    /// Number of requests that were aborted.
    pub aborted: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of ended requests by their reason, if they have one.
    pub reasons: BTreeMap<String, u64>,
    /// Number of preemptions of the requests that have ended.
    pub preemptions: u64,
    /// Number of prompt tokens of the requests that have ended.
    pub prompt_tokens: u64,
    /// Number of these prompt tokens that were in the cache.
    pub cached_tokens: u64,
    /// Number of output tokens of the requests that have ended.
    pub output_tokens: u64,
    /// Time from the arrival until the first part of the response left. If the response is sent in one piece, the time
    /// until its first token.
    pub ttft: Histogram,
    /// Time from the queue to the first token in the engine.
    pub engine_ttft: Histogram,
    /// Time per output token after the first, for each request.
    pub tpot: Histogram,
    /// Time between two tokens of a request.
    pub itl: Histogram,
    /// Time from the arrival to the end.
    pub e2e: Histogram,
    /// Time from the queue to the first schedule.
    pub queue: Histogram,
    /// Time from the first schedule to the first token.
    pub prefill: Histogram,
    /// Time from the first token to the last one.
    pub decode: Histogram,
}

impl Default for Figures {
    fn default() -> Figures {
        let request_times = || Histogram::new(&REQUEST_BOUNDS);
        let token_times = || Histogram::new(&TOKEN_BOUNDS);
        let first_token_times = || Histogram::new(&TTFT_BOUNDS);
        Figures {
            arrived: 0,
            ok: 0,
            aborted: 0,
            failed: 0,
            reasons: BTreeMap::new(),
            preemptions: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            output_tokens: 0,
            ttft: first_token_times(),
            engine_ttft: first_token_times(),
            tpot: token_times(),
            itl: token_times(),
            e2e: request_times(),
            queue: request_times(),
            prefill: request_times(),
            decode: request_times(),
        }
    }
}

/// Calls `at` with the time in ns at which each figure of a request counts, or `None` if that time is not in the trace,
/// and with a function that adds the figure. `tokens` has the times of the request's tokens, in ns.
pub(super) fn each_figure(
    request: &Request,
    tokens: &[i64],
    mut at: impl FnMut(Option<i64>, &dyn Fn(&mut Figures)),
) {
    at(request.begin_ns(), &|figures| {
        figures.arrived += 1;
    });
    let moments = [
        (Metric::Ttft, request.ttft_end_ns()),
        (Metric::EngineTtft, request.engine_first_token_ns),
        (Metric::Tpot, request.finished_ns),
        (Metric::E2e, request.finished_ns),
        (Metric::Queue, request.scheduled_ns),
        (Metric::Prefill, request.any_first_token_ns()),
        (Metric::Decode, request.last_token_ns),
    ];
    for (metric, moment_ns) in moments {
        if let Some(ns) = metric.value(request) {
            at(moment_ns, &|figures| {
                figures.histogram(metric).add_value(ns);
            });
        }
    }
    if tokens.len() > 1 {
        at(request.last_token_ns, &|figures| {
            let gaps = tokens.windows(2).map(|two| two[1] - two[0]);
            gaps.for_each(|ns| figures.itl.add_value(ns));
        });
    }
    if request.status != RequestStatus::Unfinished {
        at(request.finished_ns, &|figures| figures.end(request));
    }
}

impl Figures {
    fn histogram(&mut self, metric: Metric) -> &mut Histogram {
        match metric {
            Metric::Queue => &mut self.queue,
            Metric::Prefill => &mut self.prefill,
            Metric::Decode => &mut self.decode,
            Metric::EngineTtft => &mut self.engine_ttft,
            Metric::Ttft => &mut self.ttft,
            Metric::Tpot => &mut self.tpot,
            Metric::Itl => &mut self.itl,
            Metric::E2e => &mut self.e2e,
        }
    }

    fn end(&mut self, request: &Request) {
        match request.status {
            RequestStatus::Ok => self.ok += 1,
            RequestStatus::Aborted => self.aborted += 1,
            RequestStatus::Failed => self.failed += 1,
            RequestStatus::Unfinished => {}
        }
        if let Some(reason) = request.reason.as_deref() {
            let is_listed = self.reasons.len() < MOST_REASONS || self.reasons.contains_key(reason);
            let reason = if is_listed { reason } else { "other" };
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
        self.preemptions += request.preemptions;
        let add = |sum: &mut u64, more: Option<u64>| *sum = sum.saturating_add(more.unwrap_or(0));
        add(&mut self.prompt_tokens, request.prompt_tokens);
        add(&mut self.cached_tokens, request.cached_tokens);
        add(&mut self.output_tokens, request.output_tokens);
    }

    /// Adds the counts and durations in `other` to these figures, for example the figures of another second.
    pub(super) fn add(&mut self, other: &Figures) {
        self.arrived += other.arrived;
        self.ok += other.ok;
        self.aborted += other.aborted;
        self.failed += other.failed;
        for (reason, more) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += more;
        }
        self.preemptions += other.preemptions;
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        let histograms = [
            (&mut self.ttft, &other.ttft),
            (&mut self.engine_ttft, &other.engine_ttft),
            (&mut self.tpot, &other.tpot),
            (&mut self.itl, &other.itl),
            (&mut self.e2e, &other.e2e),
            (&mut self.queue, &other.queue),
            (&mut self.prefill, &other.prefill),
            (&mut self.decode, &other.decode),
        ];
        for (sum, more) in histograms {
            sum.merge(more);
        }
    }
}
