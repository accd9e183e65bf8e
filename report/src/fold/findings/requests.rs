//! Findings about the waiting times and failures of requests.

use super::draft;
use crate::amount::duration;
use crate::fold::verdict::KV_FULL;
use crate::table::{
    CostOf, Finding, Request, RequestPart, RunReport, SeriesKind, Stall, TraceRange,
};

/// Minimum shares of the time of requests. docs/time.md explains where each comes from.
const QUEUE: f64 = 0.10;
const FRONTEND: f64 = 0.10;
/// Minimum shares of requests.
const PREEMPTED: f64 = 0.01;
const NOT_ANSWERED: f64 = 0.05;
/// Minimum share of the decode time that prompts in steps must cost.
const STALLED_DECODES: f64 = 0.10;
/// Parts of a request's time in the frontend.
pub(in crate::fold) const IN_FRONTEND: [&str; 7] = [
    "socket",
    "HTTP",
    "preprocess",
    "IPC",
    "frontend",
    "return",
    "answer",
];

/// Returns the findings about the time of requests.
pub(super) fn requests(report: &RunReport) -> Vec<Finding> {
    let found = [
        queue(report),
        preemptions(report),
        not_answered(report),
        slow_frontend(report),
    ];
    found.into_iter().flatten().collect()
}

fn queue(report: &RunReport) -> Option<Finding> {
    let queue = &report.requests.queue;
    let (cost, evidence) = match queue.n {
        0 => queue_by_levels(report)?,
        _ => {
            let mean = duration(queue.mean_ns);
            let evidence = format!("the mean request waited {mean} in the engine's queue");
            (share_of_e2e(report, Request::queue_ns), evidence)
        }
    };
    (cost >= QUEUE).then(|| {
        let levels = report.load.iter();
        let kv = levels.filter(|level| level.of == SeriesKind::KvUsedPercent);
        let is_full = kv.map(|level| level.max).reduce(f64::max) >= Some(KV_FULL);
        let advice = match is_full {
            true => "more memory for the KV cache; shorter requests; more replicas",
            false => "more requests at once if the KV cache has room; otherwise more replicas",
        };
        Finding {
            place: longest(report, |request| request.queued_ns.zip(request.queue_ns())),
            ..draft("queue", evidence, (cost, CostOf::RequestTime), advice)
        }
    })
}

/// Returns the share of the queue and the evidence for an engine that does not record when it first schedules a
/// request. The number of queued requests, integrated over time, equals the total time that requests were queued
/// (Little's law).
fn queue_by_levels(report: &RunReport) -> Option<(f64, String)> {
    let total_ns = |kind: SeriesKind| -> f64 {
        let levels = report.load.iter().filter(|level| level.of == kind);
        levels.map(|level| level.mean * level.wall_ns as f64).sum()
    };
    let (waiting_ns, all_ns) = (
        total_ns(SeriesKind::Waiting),
        total_ns(SeriesKind::InFlight),
    );
    let share = waiting_ns / all_ns;
    let evidence = format!(
        "requests spent {:.0} % of their time in the engine's queue, estimated from the number of queued requests",
        100.0 * share
    );
    (all_ns > 0.0).then_some((share, evidence))
}

fn preemptions(report: &RunReport) -> Option<Finding> {
    let requests = report.request.iter();
    let preempted: Vec<&Request> = requests.filter(|request| request.preemptions > 0).collect();
    let (n, all) = (preempted.len() as f64, report.requests.n.max(1) as f64);
    let total_ns: f64 = preempted
        .iter()
        .map(|request| request.preempted_ns as f64)
        .sum();
    let cost = match report.requests.e2e.n {
        0 => (n / all, CostOf::Requests),
        _ => {
            let cost = share_of_e2e(report, |request| Some(request.preempted_ns));
            (cost, CostOf::RequestTime)
        }
    };
    let evidence = || {
        let (mean, were) = (
            duration(total_ns / n),
            if n == 1.0 { "was" } else { "were" },
        );
        format!("{n} of {all} requests {were} preempted for {mean} on average, and recomputed")
    };
    let advice = "more memory for the KV cache, fewer sequences in a batch";
    (n / all >= PREEMPTED).then(|| Finding {
        place: most_preempted(&preempted),
        ..draft("preemptions", evidence(), cost, advice)
    })
}

/// Returns the time from queue to end of the request that was preempted for longest.
fn most_preempted(preempted: &[&Request]) -> Option<TraceRange> {
    let most = preempted
        .iter()
        .max_by_key(|request| request.preempted_ns)?;
    let from_ns = most.queued_ns?;
    Some(TraceRange {
        from_ns,
        dur_ns: most.finished_ns? - from_ns,
    })
}

fn not_answered(report: &RunReport) -> Option<Finding> {
    let summary = &report.requests;
    let (n, lost) = (summary.n.max(1), summary.aborted + summary.failed);
    let cost = lost as f64 / n as f64;
    let advice = match (&report.crash, summary.failed > summary.aborted) {
        (Some(_), _) => "look at the crash first: these requests were in flight or came after it",
        (None, true) => "look at the server's log at the time of these requests; --json lists them",
        (None, false) => {
            "look at the slowest requests first: clients give up on what takes too long"
        }
    };
    let (aborted, failed) = (summary.aborted, summary.failed);
    let evidence = format!("{aborted} of {n} requests were aborted, {failed} failed");
    (cost >= NOT_ANSWERED)
        .then(|| draft("not_answered", evidence, (cost, CostOf::Requests), advice))
}

/// Returns the parts of the mean request that are spent in the frontend.
fn in_frontend(report: &RunReport) -> impl Iterator<Item = &RequestPart> {
    let is_in_frontend = |part: &&RequestPart| {
        let mut names = part.name.split(" + ");
        names.all(|name| IN_FRONTEND.contains(&name))
    };
    report.request_parts.parts.iter().filter(is_in_frontend)
}

/// Returns the longest part of the mean request in the frontend.
pub(in crate::fold) fn longest_in_frontend(report: &RunReport) -> Option<&RequestPart> {
    in_frontend(report).max_by(|one, other| one.mean_ns.total_cmp(&other.mean_ns))
}

/// Reports the time that requests spent outside the engine.
fn slow_frontend(report: &RunReport) -> Option<Finding> {
    let parts = &report.request_parts;
    let total_ns: f64 = in_frontend(report).map(|part| part.mean_ns).sum();
    let most = longest_in_frontend(report)?;
    let cost = total_ns / parts.e2e_mean_ns.max(1.0);
    let evidence = format!(
        "the mean request spent {} in the frontend, {} of it in {}",
        duration(total_ns),
        duration(most.mean_ns),
        most.name
    );
    let advice = "more API servers; look at tokenising and templates";
    (cost >= FRONTEND).then(|| Finding {
        place: longest(report, |request| {
            let (from_ns, to_ns) = request
                .arrival_ns
                .zip(request.queued_ns.or(request.finished_ns))?;
            Some((from_ns, to_ns - from_ns))
        }),
        ..draft(
            "slow_frontend",
            evidence,
            (cost, CostOf::RequestTime),
            advice,
        )
    })
}

/// Reports steps with a prompt that make other requests wait for their next token.
pub(super) fn stalled_decodes(report: &RunReport) -> Option<Finding> {
    let batchings = report.batching.iter();
    let stalls = batchings.filter_map(|batching| Some((batching, batching.stall()?)));
    let worst = stalls.max_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let (batching, (more_ns, stalled)) = worst?;
    // The share applies to decode only, so it is scaled by decode's share of the whole time.
    let (decode, e2e) = (&report.requests.decode, &report.requests.e2e);
    let cost = match decode.n > 0 && e2e.n > 0 {
        true => stalled * (decode.mean_ns / e2e.mean_ns.max(1.0)).min(1.0),
        false => stalled,
    };
    let evidence = format!(
        "a step of {} with a prompt delays the other answers by {} ({} of {} steps)",
        report.process_name(batching.process),
        duration(more_ns),
        batching.delaying_steps(),
        batching.steps
    );
    let advice = "smaller chunks of prompts (vLLM: --max-num-batched-tokens, SGLang: --chunked-prefill-size); prefill on other devices";
    let cost = (cost, CostOf::RequestTime);
    (stalled >= STALLED_DECODES).then(|| draft("stalled_decodes", evidence, cost, advice))
}

/// Reports a process that recorded nothing while requests waited for it.
pub(super) fn process_stalled(report: &RunReport) -> Option<Finding> {
    let longest = report.stalls.iter().max_by_key(|stall| stall.dur_ns)?;
    let is_same_process = |stall: &&Stall| stall.process == longest.process;
    let stalls: Vec<&Stall> = report.stalls.iter().filter(is_same_process).collect();
    let requests = match longest.requests {
        1 => "1 request was".to_owned(),
        n => format!("{n} requests were"),
    };
    let mut evidence = format!(
        "{} recorded nothing for {:.2} s while {requests} in flight",
        report.process_name(longest.process),
        longest.dur_ns as f64 / 1e9
    );
    if stalls.len() > 1 {
        let total_ns: i64 = stalls.iter().map(|stall| stall.dur_ns).sum();
        let (n, total_s) = (stalls.len(), total_ns as f64 / 1e9);
        evidence += &format!("; {n} such stalls took {total_s:.2} s in all");
    }
    let advice = "look for what kept it: a signal (SIGSTOP), a debugger, no free core, swapping";
    let cost = (stalled_share(report, &stalls), CostOf::RequestTime);
    Some(Finding {
        place: Some(TraceRange {
            from_ns: longest.from_ns,
            dur_ns: longest.dur_ns,
        }),
        ..draft("process_stalled", evidence, cost, advice)
    })
}

/// Returns the share of the time of all requests that falls within stalls.
fn stalled_share(report: &RunReport, stalls: &[&Stall]) -> f64 {
    let (mut stalled_ns, mut all_ns) = (0.0, 0.0);
    let requests = report.request.iter();
    for (from_ns, to_ns) in
        requests.filter_map(|request| request.in_flight_ns(report.serving.to_ns))
    {
        all_ns += (to_ns - from_ns) as f64;
        for stall in stalls {
            let end_ns = to_ns.min(stall.from_ns + stall.dur_ns);
            stalled_ns += (end_ns - from_ns.max(stall.from_ns)).max(0) as f64;
        }
    }
    stalled_ns / f64::max(all_ns, 1.0)
}

/// Returns the sum of the times that `ns` returns for answered requests, as a share of the sum of their E2E times. A
/// missing time counts as 0.
fn share_of_e2e(report: &RunReport, ns: impl Fn(&Request) -> Option<i64>) -> f64 {
    let (mut part_ns, mut all_ns) = (0.0, 0.0);
    for request in report.request.iter().filter(|request| request.is_ok()) {
        if let Some(e2e_ns) = request.e2e_ns() {
            part_ns += ns(request).unwrap_or(0) as f64;
            all_ns += e2e_ns as f64;
        }
    }
    part_ns / f64::max(all_ns, 1.0)
}

/// Returns the longest of the time ranges that `time` returns for requests, each as a start and a duration in ns.
/// Returns `None` if there are none.
fn longest(
    report: &RunReport,
    time: impl Fn(&Request) -> Option<(i64, i64)>,
) -> Option<TraceRange> {
    let times = report.request.iter().filter_map(time);
    let (from_ns, dur_ns) = times.max_by_key(|(_, dur_ns)| *dur_ns)?;
    Some(TraceRange { from_ns, dur_ns })
}
