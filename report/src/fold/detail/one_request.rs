//! Details of one request: its parts, its steps, the activity of the devices meanwhile, and its neighbours.

use super::device_use::{device_use, mean_use};
use super::{load_at, parts};
use crate::gather::detail_events::{OutputsOfRequest, RequestEvents, RequestStep, TimeRange};
use crate::gather::edge::number;
use crate::rows::IdleInterval;
use crate::statistics::quantiles::Quantiles;
use crate::table::{
    LongestGap, Neighbour, OnePart, OneRequest, Request, RequestSteps, RunReport, StepOfRequest,
    TraceRange,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of ids that an error lists if several match.
const CANDIDATES: usize = 5;
/// Number of similar ids that an error lists if none matches.
const NEAR: usize = 3;
/// Number of requests before and after the request that are shown for comparison.
const NEIGHBOURS: usize = 3;

/// Returns the index of the request with this id, or else of the only id that contains this text. If several requests
/// have the id, the first one is returned.
pub(crate) fn request_number(requests: &[Request], text: &str) -> Result<usize, String> {
    if let Some(exact) = requests
        .iter()
        .position(|request| *request.request_id == *text)
    {
        return Ok(exact);
    }
    let all: BTreeSet<&str> = requests
        .iter()
        .map(|request| &*request.request_id)
        .collect();
    let has = |is_meant: fn(&str, &str) -> bool| -> Vec<&str> {
        let ids = all.iter().copied();
        ids.filter(|id| is_meant(id, text)).collect()
    };
    let mut found = has(|id, text| id.starts_with(text));
    if found.is_empty() {
        found = has(|id, text| id.contains(text));
    }
    match found[..] {
        [id] => {
            let mut ids = requests.iter().map(|request| &*request.request_id);
            Ok(ids.position(|other| other == id).unwrap_or(0))
        }
        [] => Err(unknown(&all, text)),
        _ => {
            let more = if found.len() > CANDIDATES {
                ", …"
            } else {
                ""
            };
            let shown = found[..found.len().min(CANDIDATES)].join(", ");
            let n = found.len();
            Err(format!(
                "--request {text}: {n} ids contain this: {shown}{more}"
            ))
        }
    }
}

/// Returns the error message for a text that no request id contains. The message lists the ids from `all` that are
/// most similar to it.
fn unknown(all: &BTreeSet<&str>, text: &str) -> String {
    let pairs =
        |text: &str| -> BTreeSet<(char, char)> { text.chars().zip(text.chars().skip(1)).collect() };
    let wanted = pairs(text);
    let mut ids: Vec<&str> = all.iter().copied().collect();
    ids.sort_by_cached_key(|id| {
        let found = pairs(id);
        let common = found.intersection(&wanted).count();
        (Reverse(common), found.len().abs_diff(wanted.len()))
    });
    ids.truncate(NEAR);
    match ids[..] {
        [] => format!("--request {text}: the run has no requests"),
        _ => format!(
            "--request {text}: none of the {} request ids contains this; similar ones are {}",
            all.len(),
            ids.join(", ")
        ),
    }
}

/// Returns the details of one request. `nth` is its index in the report, and `idle` lists idle times of devices. The
/// trace ends at `end_ns`.
pub(crate) fn one_request(
    report: &RunReport,
    nth: usize,
    end_ns: i64,
    idle: &[IdleInterval],
    (events, outputs): (RequestEvents, &OutputsOfRequest),
) -> OneRequest {
    let request = &report.request[nth];
    let begin_ns = request.begin_ns().unwrap_or_default();
    let wall_ns = request.finished_ns.unwrap_or(end_ns).max(begin_ns) - begin_ns;
    let own_steps = steps_of_request(events.steps);
    let workers: BTreeSet<usize> = own_steps.iter().map(|step| step.process).collect();
    let has_device = report
        .idle
        .iter()
        .any(|device| workers.contains(&device.worker));
    let medians = part_medians(&report.request);
    let part = |(name, offset_ns, dur_ns): (String, i64, i64)| {
        let from_ns = begin_ns + offset_ns;
        let to_ns = from_ns + dur_ns;
        let time = TimeRange { from_ns, to_ns };
        let devices = device_use(report, idle, time, |device| {
            !has_device || workers.contains(&device.worker)
        });
        OnePart {
            median_ns: medians.get(&name).copied(),
            devices: mean_use(&devices),
            name,
            offset_ns,
            dur_ns,
        }
    };
    let median = |figures: &Quantiles| (figures.n > 0).then_some(figures.p50_ns);
    let same_id = |other: &&Request| other.request_id == request.request_id;
    OneRequest {
        process: request.process.map(|process| report.process_name(process)),
        later: report.request[nth + 1..].iter().filter(same_id).count(),
        wall_ns,
        e2e_median_ns: median(&report.requests.e2e),
        ttft_median_ns: median(&report.requests.ttft),
        parts: parts(report, request, end_ns)
            .into_iter()
            .map(part)
            .collect(),
        arrival: load_at(report, &events.levels, begin_ns, Some(nth)),
        itl: longest_gap(request, &events.tokens, outputs),
        steps: steps(report, request, &own_steps),
        neighbours: neighbours(&report.request, nth),
        place: TraceRange {
            from_ns: begin_ns,
            dur_ns: wall_ns,
        },
        request: request.clone(),
    }
}

/// Returns the median duration of each part in ns by the part's name, over the requests whose arrival and end are in
/// the trace.
fn part_medians(requests: &[Request]) -> BTreeMap<String, f64> {
    let mut durations: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (name, ns) in requests.iter().filter_map(Request::parts).flatten() {
        durations.entry(name).or_default().push(ns);
    }
    let durations = durations.into_iter();
    durations
        .map(|(name, values)| (name, Quantiles::from_values(values).p50_ns))
        .collect()
}

/// Returns the longest and the mean time between two consecutive tokens of a request. The outputs that the frontend
/// listed are preferred over recorded tokens. Returns `None` if no such time is known.
fn longest_gap(
    request: &Request,
    tokens: &[(usize, i64)],
    outputs: &OutputsOfRequest,
) -> Option<LongestGap> {
    let mut times: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for (process, ns) in tokens {
        times.entry(*process).or_default().push(*ns);
    }
    // Prefer the tokens that the frontend recorded, or else those of the process with the most tokens.
    let rank = |(process, ns): &(usize, Vec<i64>)| (Some(*process) == request.process, ns.len());
    let best = times.into_iter().max_by_key(rank);
    let mut times = best.map_or(Vec::new(), |(_, ns)| ns);
    times.sort_unstable();
    let mut gaps: Vec<(i64, i64)> = times
        .array_windows()
        .map(|[from_ns, to_ns]| (to_ns - from_ns, *from_ns))
        .collect();
    let mut sorted = outputs.outputs.clone();
    sorted.sort_unstable();
    let listed = sorted.array_windows().filter_map(|[before, output]| {
        let (from_ns, to_ns) = (before.ts_ns, output.ts_ns);
        let is_known = !outputs.pauses.interrupt(output.process, from_ns, to_ns);
        is_known.then(|| (output.engine_ns.saturating_sub(before.engine_ns), from_ns))
    });
    if !sorted.is_empty() {
        gaps = listed.collect();
    }
    let sum_ns: i128 = gaps.iter().map(|(ns, _)| i128::from(*ns)).sum();
    let (max_ns, at_ns) = *gaps.iter().max_by_key(|(ns, _)| *ns)?;
    Some(LongestGap {
        mean_ns: sum_ns as f64 / gaps.len() as f64,
        max_ns,
        at_ns,
    })
}

/// Returns the steps that the request took part in. Nested spans of one process count as one step, which belongs to the
/// request if any of them names it.
fn steps_of_request(mut spans: Vec<RequestStep>) -> Vec<RequestStep> {
    spans.sort_unstable();
    let mut steps: Vec<RequestStep> = Vec::new();
    for span in spans {
        match steps.last_mut() {
            Some(step) if step.process == span.process && step.end_ns <= span.end_ns => {
                step.names_request |= span.names_request;
                step.only_decodes |= span.only_decodes;
            }
            _ => steps.push(span),
        }
    }
    steps.retain(|step| step.names_request);
    steps
}

/// Returns the request's steps on the worker with the most of them.
fn steps(report: &RunReport, request: &Request, steps: &[RequestStep]) -> RequestSteps {
    let by_worker = steps.chunk_by(|one, next| one.process == next.process);
    let most = by_worker.max_by_key(|own| (own.len(), Reverse(number(own[0].process))));
    let Some(steps) = most else {
        return RequestSteps::default();
    };
    let token_ns = request.any_first_token_ns().unwrap_or(i64::MAX);
    // The next step may be launched before the first token is known.
    let is_prefill = |step: &&RequestStep| step.end_ns.0 <= token_ns && !step.only_decodes;
    let shown = |step: &RequestStep| StepOfRequest {
        number: step.number,
        start_ns: step.start_ns,
        dur_ns: (step.end_ns.0 != i64::MAX).then(|| step.end_ns.0 - step.start_ns),
    };
    let decode = || steps.iter().filter(|step| !is_prefill(step));
    RequestSteps {
        worker: Some(report.process_name(steps[0].process)),
        prefill: steps.iter().filter(is_prefill).map(shown).collect(),
        decode: decode().count(),
        slowest_decode: decode()
            .map(shown)
            .max_by_key(|step| step.dur_ns.unwrap_or(i64::MAX)),
    }
}

/// Returns the requests that arrived just before and after one, and another one of similar size.
fn neighbours(requests: &[Request], nth: usize) -> Vec<Neighbour> {
    let size = |request: &Request| Some((request.prompt_tokens?, request.output_tokens?));
    let near = nth.saturating_sub(NEIGHBOURS)..(nth + NEIGHBOURS + 1).min(requests.len());
    let own = size(&requests[nth]);
    let distance = |request: &Request| {
        let ((prompt, output), (own_prompt, own_output)) = (size(request)?, own?);
        Some(
            prompt
                .abs_diff(own_prompt)
                .saturating_add(output.abs_diff(own_output)),
        )
    };
    let others = requests.iter().enumerate();
    let others = others.filter(|(other, request)| !near.contains(other) && request.is_ok());
    let similar = others
        .filter_map(|(other, request)| Some((distance(request)?, other.abs_diff(nth), other)))
        .min();
    let neighbour = |(relation, number): (&'static str, usize)| {
        let request = &requests[number];
        Neighbour {
            relation,
            request_id: request.request_id.to_string(),
            status: request.status,
            arrival_ns: request.begin_ns().unwrap_or_default(),
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            ttft_ns: request.ttft_ns(),
            e2e_ns: request.e2e_ns(),
        }
    };
    let before = (near.start..nth).map(|number| ("before", number));
    let after = (nth + 1..near.end).map(|number| ("after", number));
    let similar = similar.map(|(.., number)| ("similar", number));
    let all = before.chain(after).chain(similar);
    all.map(neighbour).collect()
}
