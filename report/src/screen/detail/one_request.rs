//! The screen of one request.

use super::{cause, cells, fitting, load_words, ns, open_line, percent, short, table};
use crate::screen::amount::{aligned, counted, duration, grouped};
use crate::table::{Neighbour, OnePart, OneRequest, RequestStatus, StepOfRequest};

/// Width of a bar for the whole time, in columns.
const BAR: i64 = 10;

/// Returns the screen of one request: its times, its parts, its steps, and other requests to compare it with.
pub(super) fn text(detail: &OneRequest, run: &str) -> String {
    let mut out = head(detail);
    out.push('\n');
    out.push_str(&parts(detail));
    out.push('\n');
    out.push_str(&format!("at arrival   {}\n", load_words(&detail.arrival)));
    out.push_str(&steps(detail));
    out.push('\n');
    out.push_str(&neighbours(detail));
    out.push('\n');
    out.push_str(&open_line(run, detail.place));
    out
}

fn head(detail: &OneRequest) -> String {
    let request = &detail.request;
    let reason = request.reason.as_deref();
    let reason = reason.map_or_else(String::new, |why| format!(" ({})", short(why, 20)));
    let (id, status) = (short(&request.request_id, 56), status(request.status));
    let mut out = format!("request      {id}: {status}{reason}\n");
    if detail.later > 0 {
        let later = counted(
            detail.later as u64,
            "later request has",
            "later requests have",
        );
        out.push_str(&format!(
            "             {later} the same id: --from shows one of them\n"
        ));
    }
    let process = detail.process.as_ref();
    let process = process.map_or_else(String::new, |name| format!(", in {}", short(name, 24)));
    out.push_str(&format!(
        "arrived      {}{process}",
        ns(detail.place.from_ns)
    ));
    let tokens = [
        (request.prompt_tokens, "prompt tokens"),
        (request.cached_tokens, "of them cached"),
        (request.output_tokens, "output tokens"),
    ];
    for (n, label) in tokens {
        out.push_str(&n.map_or_else(String::new, |n| format!(", {} {label}", grouped(n))));
    }
    let median =
        |ns: Option<f64>| ns.map_or_else(String::new, |ns| format!(" (median {})", duration(ns)));
    let mut times = vec![match request.finished_ns {
        Some(_) => format!("E2E {}{}", ns(detail.wall_ns), median(detail.e2e_median_ns)),
        None => format!("no end after {}", ns(detail.wall_ns)),
    }];
    if let Some(ttft_ns) = request.ttft_ns() {
        times.push(format!(
            "TTFT {}{}",
            ns(ttft_ns),
            median(detail.ttft_median_ns)
        ));
    }
    if let Some(tpot_ns) = request.tpot_ns() {
        times.push(format!("TPOT {}", ns(tpot_ns)));
    }
    out + &format!("\ntimes        {}\n", times.join(", "))
}

/// Returns the outcome of a request, or `in flight` if it has no end in the trace.
fn status(status: RequestStatus) -> &'static str {
    match status {
        RequestStatus::Unfinished => "in flight",
        status => status.name(),
    }
}

fn parts(detail: &OneRequest) -> String {
    let has_devices = detail.parts.iter().any(|part| part.devices.is_some());
    let head = match has_devices {
        true => "part|start|took|median|share||devices busy|main idle cause",
        false => "part|start|took|median|share|",
    };
    let mut rows = vec![cells(head)];
    rows.extend(detail.parts.iter().map(|part| row(part, detail.wall_ns)));
    let request = &detail.request;
    let mut out = aligned(&rows, "  ", |column| {
        (1..5).contains(&column) || column == 6
    });
    if let (None, Some(last)) = (request.finished_ns, detail.parts.last()) {
        out.push_str(&format!("  the request is still in {}\n", last.name));
    }
    if request.preemptions > 0 {
        out.push_str(&format!(
            "  the request was preempted {}, for {} in total\n",
            counted(request.preemptions, "time", "times"),
            ns(request.preempted_ns)
        ));
    }
    out
}

/// Returns the row of a part of the request, with a bar for its share of `wall_ns`, the time of the whole request.
fn row(part: &OnePart, wall_ns: i64) -> Vec<String> {
    let wall_ns = wall_ns.max(1);
    let marks = BAR.saturating_mul(part.dur_ns).saturating_add(wall_ns / 2) / wall_ns;
    let devices = part.devices.as_ref();
    let most = devices.and_then(|usage| usage.cause.filter(|(_, share)| *share >= 0.005));
    vec![
        short(&part.name, 18),
        format!("+{}", ns(part.offset_ns)),
        ns(part.dur_ns),
        part.median_ns.map_or_else(|| "–".to_owned(), duration),
        percent(part.dur_ns as f64 / wall_ns as f64),
        "█".repeat(usize::try_from(marks).unwrap_or(0)),
        devices.map_or_else(String::new, |usage| percent(usage.busy)),
        most.map_or_else(String::new, |(idle_cause, share)| {
            format!("{} {}", cause(idle_cause), percent(share))
        }),
    ]
}

/// Returns words for a step in which the request took part: number, duration and start.
fn step(step: &StepOfRequest) -> String {
    let number = step
        .number
        .map_or_else(String::new, |n| format!("step {n}, "));
    let took = step.dur_ns.map_or_else(|| "no end".to_owned(), ns);
    format!("{number}{took} at {}", ns(step.start_ns))
}

fn steps(detail: &OneRequest) -> String {
    let (steps, mut out) = (&detail.steps, String::new());
    if let Some(worker) = &steps.worker {
        let n = counted(steps.prefill.len() as u64, "step", "steps");
        let worker = short(worker, 20);
        let shown = fitting(steps.prefill.iter().map(step), "; ", 50);
        // Without a first token, all steps are counted as prefill.
        let has_token = detail.request.any_first_token_ns().is_some();
        let what = if has_token { "prefill" } else { "steps" };
        out.push_str(&format!("{what:<12} in {n} of {worker}: {shown}\n"));
        if let Some(slowest) = &steps.slowest_decode {
            let n = counted(steps.decode as u64, "step", "steps");
            out.push_str(&format!(
                "decode       in {n}, the slowest: {}\n",
                step(slowest)
            ));
        }
    }
    if let Some(itl) = &detail.itl {
        out.push_str(&format!(
            "ITL          mean {}, max {} at {}\n",
            duration(itl.mean_ns),
            ns(itl.max_ns),
            ns(itl.at_ns)
        ));
    }
    out
}

fn neighbours(detail: &OneRequest) -> String {
    if detail.neighbours.is_empty() {
        return "neighbours   none: the run has no other request\n".to_owned();
    }
    let mut rows = vec![cells("compare|request|arrived|prompt|output|TTFT|E2E|")];
    let own = Neighbour {
        relation: "this one",
        request_id: detail.request.request_id.to_string(),
        status: detail.request.status,
        arrival_ns: detail.place.from_ns,
        prompt_tokens: detail.request.prompt_tokens,
        output_tokens: detail.request.output_tokens,
        ttft_ns: detail.request.ttft_ns(),
        e2e_ns: detail.request.e2e_ns(),
    };
    let after = detail
        .neighbours
        .iter()
        .position(|other| other.relation != "before");
    let (before, after) = detail
        .neighbours
        .split_at(after.unwrap_or(detail.neighbours.len()));
    for one in before.iter().chain([&own]).chain(after) {
        let count = |n: Option<u64>| n.map_or_else(|| "–".to_owned(), grouped);
        let time = |time_ns: Option<i64>| time_ns.map_or_else(|| "–".to_owned(), ns);
        rows.push(vec![
            one.relation.to_owned(),
            short(&one.request_id, 32),
            ns(one.arrival_ns),
            count(one.prompt_tokens),
            count(one.output_tokens),
            time(one.ttft_ns),
            time(one.e2e_ns),
            match one.status {
                RequestStatus::Ok => String::new(),
                other => status(other).to_owned(),
            },
        ]);
    }
    table(&rows, 2..7)
}
