//! Moments → requests.

pub(crate) mod prefixes;

use super::output_tokens::{self, OutputTokens};
use super::phase_changes::{PhaseChange, PhaseChanges};
use super::phase_sequences::PhaseSequences;
use crate::gather::request_moment::{MomentKind, RequestArgs, RequestMoment};
use crate::gather::value_record::ValueRecord;
use crate::options::Slo;
use crate::quantiles::{Ascending, Quantiles};
use crate::table::request::{Request, RequestStatus};
use crate::table::request_parts::Phases;
use crate::table::request_summary::{Goodput, RequestSummary};
use std::collections::{HashMap, HashSet};
use std::io;
use trace_store::sorter::Sorter;
use xxhash_rust::xxh3::xxh3_64;

/// What is known of the requests.
#[derive(Debug, Default)]
pub(crate) struct RequestFacts {
    of: HashMap<u64, OneRequest>,
}

/// What the processes say of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct OneRequest {
    id: String,
    http: Option<SpanTimes>,
    preprocess: Option<SpanTimes>,
    args: RequestArgs,
    answered_ns: Option<i64>,
    preemptions: u64,
    /// Since when it is preempted, and how long it was before.
    preempted_since_ns: Option<i64>,
    preempted_ns: i64,
    changes: PhaseChanges,
    /// Of each process that says anything of it: two or three.
    processes: Vec<(usize, InProcess)>,
}

/// What one process says of it.
#[derive(Clone, Debug, Default)]
struct InProcess {
    span: Option<SpanTimes>,
    queued_ns: Option<i64>,
    scheduled_ns: Option<i64>,
    /// Since when it is preempted for the first time.
    preempted_ns: Option<i64>,
    first_token_ns: Option<i64>,
    last_token_ns: Option<i64>,
    finished_ns: Option<i64>,
    tokens: u64,
}

#[derive(Clone, Copy, Debug)]
struct SpanTimes {
    process: usize,
    start_ns: i64,
    end_ns: Option<i64>,
}

impl RequestFacts {
    /// Notes the id of a request.
    pub(crate) fn name(&mut self, request: u64, id: String) {
        self.of.entry(request).or_default().id = id;
    }

    /// Takes what an event says. Gives the time of a token, and what it is sorted under.
    pub(crate) fn take(&mut self, mut moment: RequestMoment) -> Option<ValueRecord> {
        let mut token = None;
        let one = self.of.entry(moment.request).or_default();
        let known = one
            .processes
            .iter()
            .position(|(process, _)| *process == moment.process);
        let number = known.unwrap_or(one.processes.len());
        if known.is_none() {
            one.processes.push((moment.process, InProcess::default()));
        }
        let of_process = &mut one.processes[number].1;
        let ts_ns = moment.ts_ns;
        let first =
            |known: &mut Option<i64>| *known = Some(known.map_or(ts_ns, |known| known.min(ts_ns)));
        let last = |known: &mut Option<i64>| *known = (*known).max(Some(ts_ns));
        match moment.kind {
            MomentKind::Http => SpanTimes::add(&mut one.http, &moment),
            MomentKind::Request => SpanTimes::add(&mut of_process.span, &moment),
            MomentKind::Preprocess => SpanTimes::add(&mut one.preprocess, &moment),
            MomentKind::Queued => first(&mut of_process.queued_ns),
            MomentKind::Scheduled => {
                first(&mut of_process.scheduled_ns);
                // A recorder without `resumed` schedules it again.
                if of_process
                    .preempted_ns
                    .is_some_and(|since_ns| since_ns < ts_ns)
                {
                    moment.args.cached_tokens = None;
                }
                one.runs(ts_ns);
            }
            MomentKind::FirstToken => first(&mut of_process.first_token_ns),
            MomentKind::Preempted => {
                first(&mut of_process.preempted_ns);
                one.preemptions += 1;
                one.changes.add(ts_ns, PhaseChange::Preempted);
                one.preempted_since_ns = Some(ts_ns);
            }
            MomentKind::Resumed => {
                one.runs(ts_ns);
                // What is there again, it had computed itself.
                moment.args.cached_tokens = None;
            }
            MomentKind::SpanEnd => {}
            MomentKind::Finished => last(&mut of_process.finished_ns),
            MomentKind::Answered => last(&mut one.answered_ns),
            MomentKind::Token => {
                first(&mut of_process.first_token_ns);
                last(&mut of_process.last_token_ns);
                of_process.tokens += 1;
                let of = output_tokens::row(moment.request, moment.process);
                token = Some(ValueRecord { of, ns: ts_ns });
            }
        }
        one.args.add(moment.args);
        token
    }

    /// Whether a request has ended, as far as is known by now.
    pub(crate) fn is_over(&self, request: u64) -> bool {
        let one = self.of.get(&request).cloned();
        let known = one.and_then(OneRequest::request);
        known.is_some_and(|request| request.status != RequestStatus::Unfinished)
    }

    /// All requests that are known, under their hashes.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, &OneRequest)> {
        self.of.iter().map(|(request, one)| (*request, one))
    }

    /// Whether this process scheduled a request.
    fn is_scheduled(&self, id: &str, process: usize) -> bool {
        let one = self.of.get(&xxh3_64(id.as_bytes()));
        let of_processes = one.into_iter().flat_map(|one| &one.processes);
        let mut known = of_processes.filter(|(known, _)| *known == process);
        known.any(|(_, of)| of.scheduled_ns.is_some())
    }

    /// How many requests processes scheduled. One that two did counts twice.
    fn scheduled(&self) -> u64 {
        let of_processes = self.of.values().flat_map(|one| &one.processes);
        let scheduled = of_processes.filter(|(_, of)| of.scheduled_ns.is_some());
        scheduled.count() as u64
    }

    /// What the prefix cache had of a request's prompt.
    fn cached_tokens(&self, id: &str) -> Option<u64> {
        self.of.get(&xxh3_64(id.as_bytes()))?.args.cached_tokens
    }

    /// Forgets a request, and gives what was known of it.
    pub(crate) fn remove(&mut self, request: u64) -> Option<OneRequest> {
        self.of.remove(&request)
    }

    /// Under what the tokens are sorted that count.
    pub(crate) fn token_rows(&self) -> HashSet<u64> {
        let of = |(request, one): (u64, &OneRequest)| one.token_row(request);
        self.each().filter_map(of).collect()
    }

    /// All requests that began or ended in the trace, in the order of their arrival, and the phases that they went through.
    pub(crate) fn requests(self) -> (Vec<Request>, Phases) {
        let mut sequences = PhaseSequences::default();
        let request = |mut one: OneRequest| {
            let changes = std::mem::take(&mut one.changes);
            let request = one.request()?;
            if let Some(phases) = changes.phases(&request) {
                sequences.take(&phases);
            }
            Some(request)
        };
        let mut requests: Vec<Request> = self.of.into_values().filter_map(request).collect();
        requests.sort_by(|one, other| {
            (one.arrival_ns, &one.request_id).cmp(&(other.arrival_ns, &other.request_id))
        });
        (requests, sequences.finish())
    }
}

impl SpanTimes {
    fn add(known: &mut Option<SpanTimes>, moment: &RequestMoment) {
        let new = SpanTimes {
            process: moment.process,
            start_ns: moment.ts_ns,
            end_ns: moment.end_ns.filter(|end_ns| *end_ns >= moment.ts_ns),
        };
        let known = known.get_or_insert(new);
        if new.start_ns < known.start_ns {
            *known = new;
        }
    }
}

impl RequestArgs {
    fn add(&mut self, other: RequestArgs) {
        self.prompt_tokens = self.prompt_tokens.max(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.max(other.cached_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        self.reason = other.reason.or(self.reason.take());
    }
}

impl OneRequest {
    /// It runs, or runs on if it was preempted.
    fn runs(&mut self, ts_ns: i64) {
        self.changes.add(ts_ns, PhaseChange::Runs);
        if let Some(since_ns) = self.preempted_since_ns.take() {
            let ns = ts_ns.saturating_sub(since_ns).max(0);
            self.preempted_ns = self.preempted_ns.saturating_add(ns);
        }
    }

    /// The span that began at its arrival.
    fn arrival(&self) -> Option<SpanTimes> {
        let spans = self.processes.iter().filter_map(|(_, of)| of.span);
        let first = || spans.min_by_key(|span| span.start_ns);
        // Without HTTP, what comes before the request's own span is a part of it.
        let since_ns = |span: SpanTimes| {
            let before_ns = self
                .preprocess
                .map_or(span.start_ns, |before| before.start_ns);
            SpanTimes {
                start_ns: span.start_ns.min(before_ns),
                ..span
            }
        };
        self.http.or_else(|| first().map(since_ns))
    }

    /// The process whose tokens count: the frontend, which sees what clients see, else that with the most.
    fn token_process(&self) -> Option<usize> {
        let frontend = self.arrival().map(|span| span.process);
        let noted = self.processes.iter().filter(|(_, of)| of.tokens > 0);
        let by = |(process, of): &&(usize, InProcess)| (Some(*process) == frontend, of.tokens);
        noted.max_by_key(by).map(|(process, _)| *process)
    }

    /// Under what its tokens are sorted that count.
    pub(crate) fn token_row(&self, request: u64) -> Option<u64> {
        Some(output_tokens::row(request, self.token_process()?))
    }

    /// Under what those of all its processes are.
    pub(crate) fn rows(&self, request: u64) -> impl Iterator<Item = u64> {
        let processes = self.processes.iter();
        processes.map(move |(process, _)| output_tokens::row(request, *process))
    }

    /// The request; `None` if nothing but its tokens is known.
    pub(crate) fn request(self) -> Option<Request> {
        let processes = || self.processes.iter().map(|(_, of)| of);
        let arrival = self.arrival();
        // The engine is the process that has a queue, of several the first that it waited in; the frontend that which the request came to. They may be one.
        let queues = processes().filter(|of| of.queued_ns.is_some());
        let engine = queues.min_by_key(|of| of.queued_ns);
        let frontend = arrival.and_then(|span| {
            let is_it = |(process, _): &&(usize, InProcess)| *process == span.process;
            Some(&self.processes.iter().find(is_it)?.1)
        });
        let queued_ns = engine.and_then(|of| of.queued_ns);
        if arrival.is_none() && queued_ns.is_none() {
            return None;
        }
        let tokens = processes()
            .map(|of| of.tokens)
            .max()
            .filter(|tokens| *tokens > 0);
        let ends = processes().filter_map(|of| of.finished_ns);
        let finished_ns = match arrival {
            Some(span) => span.end_ns,
            None => ends.max(),
        };
        let last_token_ns = processes().filter_map(|of| of.last_token_ns).max();
        Some(Request {
            status: status(self.args.reason.as_deref(), finished_ns),
            arrival_ns: arrival.map(|span| span.start_ns),
            read_ns: self.preprocess.map(|span| span.start_ns),
            preprocessed_ns: self.preprocess.and_then(|span| span.end_ns),
            queued_ns,
            scheduled_ns: processes().filter_map(|of| of.scheduled_ns).min(),
            engine_first_token_ns: engine.and_then(|of| of.first_token_ns),
            first_token_ns: frontend.and_then(|of| of.first_token_ns),
            last_token_ns: last_token_ns.or(engine.and_then(|of| of.finished_ns)),
            answered_ns: self.answered_ns,
            finished_ns,
            prompt_tokens: self.args.prompt_tokens,
            cached_tokens: self.args.cached_tokens,
            output_tokens: self.args.output_tokens.or(tokens),
            preemptions: self.preemptions,
            preempted_ns: self.preempted_ns,
            reason: self.args.reason,
            request_id: self.id,
        })
    }
}

fn status(reason: Option<&str>, finished_ns: Option<i64>) -> RequestStatus {
    match reason {
        Some("abort" | "aborted" | "cancelled") => RequestStatus::Aborted,
        Some("error" | "failed" | "timeout" | "ignored") => RequestStatus::Failed,
        _ if finished_ns.is_none() => RequestStatus::Unfinished,
        _ => RequestStatus::Ok,
    }
}

/// All requests in a few figures; `tokens` are the times of theirs.
pub(crate) fn summary(
    requests: &[Request],
    slo: Option<Slo>,
    tokens: &OutputTokens<'_>,
    gaps: Sorter<'_, ValueRecord>,
    of_gap: &mut dyn FnMut(i64),
) -> io::Result<RequestSummary> {
    let of = |figure: fn(&Request) -> Option<i64>| {
        Quantiles::of(requests.iter().filter_map(figure).collect())
    };
    let count = |status| {
        requests
            .iter()
            .filter(|request| request.status == status)
            .count() as u64
    };
    let first_ns = requests
        .iter()
        .filter_map(|request| request.arrival_ns.or(request.queued_ns))
        .min();
    let last_ns = requests
        .iter()
        .filter_map(|request| request.finished_ns)
        .max();
    let wall_ns = first_ns
        .zip(last_ns)
        .map(|(first_ns, last_ns)| last_ns - first_ns);
    let seconds = wall_ns
        .filter(|wall_ns| *wall_ns > 0)
        .map(|wall_ns| wall_ns as f64 / 1e9);
    let ok = count(RequestStatus::Ok);
    let answered = requests
        .iter()
        .filter(|request| request.status == RequestStatus::Ok);
    let output = answered.filter_map(|request| request.output_tokens);
    let output = output.fold(0, u64::saturating_add);
    let goodput = slo.map(|slo| {
        let good = requests
            .iter()
            .filter(|request| request.keeps(&slo))
            .count() as u64;
        Goodput {
            slo,
            requests: good,
            requests_per_s: seconds.map(|seconds| good as f64 / seconds),
        }
    });
    Ok(RequestSummary {
        goodput,
        n: requests.len() as u64,
        ok,
        aborted: count(RequestStatus::Aborted),
        failed: count(RequestStatus::Failed),
        unfinished: count(RequestStatus::Unfinished),
        requests_per_s: seconds.map(|seconds| ok as f64 / seconds),
        output_tokens_per_s: seconds
            .filter(|_| output > 0)
            .map(|seconds| output as f64 / seconds),
        queue: of(Request::queue_ns),
        ttft: of(Request::ttft_ns),
        engine_ttft: of(Request::engine_ttft_ns),
        tpot: of(Request::tpot_ns),
        itl: between_tokens(tokens, gaps, of_gap)?,
        prefill: of(Request::prefill_ns),
        decode: of(Request::decode_ns),
        e2e: of(Request::e2e_ns),
    })
}

/// The times between tokens of one request, those of all requests together.
fn between_tokens(
    tokens: &OutputTokens<'_>,
    mut gaps: Sorter<'_, ValueRecord>,
    of_gap: &mut dyn FnMut(i64),
) -> io::Result<Quantiles> {
    let (mut last, mut n) = (None, 0);
    tokens.each(|token| {
        if let Some(ValueRecord { ns, .. }) = last.replace(token).filter(|last| last.of == token.of)
        {
            n += 1;
            of_gap(token.ns - ns);
            gaps.push(ValueRecord {
                of: 0,
                ns: token.ns - ns,
            })?;
        }
        Ok(())
    })?;
    let mut ascending = Ascending::new(n);
    gaps.finish()?.each(|gap| {
        ascending.take(gap.ns);
        Ok(())
    })?;
    Ok(ascending.finish())
}
