//! The requests.

use super::amount::{counted, duration, grouped, share, table};
use super::names::shown;
use super::recorded::clock_note;
use crate::csv_file::serialize_text;
use crate::intervals::of_mean;
use crate::quantiles::Quantiles;
use crate::table::request::Request;
use crate::table::request_parts::Phases;
use crate::table::request_parts::RequestParts;
use crate::table::request_summary::{OutOfOrder, RequestSummary};
use crate::table::run_report::RunReport;
use serde::Serialize;
use trace_merge::Error;

/// From so many requests on, the screen does not say how little their means say.
const MANY: u64 = 30;
/// Orders of phases that are shown.
const SEQUENCES: usize = 5;

pub(super) fn put(report: &RunReport, out: &mut String) {
    let summary = &report.requests;
    if summary.n == 0 {
        out.push_str("requests   none is named: no event carries a request_id (docs/time.md says which ones to write)\n");
        return;
    }
    let parts = [
        (summary.ok, "ok"),
        (summary.aborted, "aborted"),
        (summary.failed, "failed"),
        (summary.unfinished, "unfinished"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{} {word}", grouped(*n)))
        .collect();
    let mut line = format!("requests   {}: {}", grouped(summary.n), parts.join(", "));
    if let Some(rate) = summary.requests_per_s {
        line.push_str(&format!("; {rate:.1} a second"));
    }
    if let Some(rate) = summary.output_tokens_per_s {
        line.push_str(&format!(", {rate:.0} output tokens a second"));
    }
    let all = 0..report.recorded.processes.len();
    line.push_str(&clock_note(&report.recorded, all));
    out.push_str(&line);
    out.push('\n');
    if let Some(goodput) = &summary.goodput {
        let rate = goodput.requests_per_s.unwrap_or(0.0);
        let good = share(goodput.requests as f64, summary.n as f64);
        let kept = grouped(goodput.requests);
        out.push_str(&format!(
            "  goodput: {kept} ({good}) keep the objectives; {rate:.1} a second\n"
        ));
    }
    put_figures(report, out);
    put_out_of_order(&summary.out_of_order, out);
    put_parts(&report.request_parts, out);
    put_phases(&report.phases, out);
    if summary.n < 30 {
        out.push_str(&format!(
            "  p90 and p99 of only {} say little\n",
            counted(summary.n, "request", "requests")
        ));
    }
    put_intervals(summary, out);
}

/// Adds a row for each figure that the trace has. Figures that begin in the application have their own rows if the arrival in the kernel is known.
fn put_figures(report: &RunReport, out: &mut String) {
    let summary = &report.requests;
    let is_arrival_known = summary.is_arrival_known();
    let from = match is_arrival_known {
        true => "from arrival in the kernel",
        false => "from when the frontend got it",
    };
    let mut requests = report.request.iter();
    let is_streamed = requests.any(|one| one.ttft_end_ns() != one.first_token_ns());
    let to_first_token = match (is_streamed, is_arrival_known) {
        (true, _) => format!("{from} until the first part of the answer left"),
        (false, true) => format!("{from} to the first token"),
        (false, false) => format!("{from} to its first token"),
    };
    let to_end = format!("{from} to the end");
    let figures = [
        (
            "queue",
            &summary.queue,
            "from the engine's queue to the first schedule",
        ),
        ("prefill", &summary.prefill, "from there to the first token"),
        (
            "decode",
            &summary.decode,
            "from the first token to the last",
        ),
        (
            "TTFT, engine",
            &summary.engine_ttft,
            "from the queue to the first token",
        ),
        ("TTFT, frontend", &summary.ttft, to_first_token.as_str()),
        (
            "TTFT, application",
            &summary.application_ttft,
            "the same, from when the application got it",
        ),
        ("TPOT", &summary.tpot, "per output token behind the first"),
        (
            "ITL",
            &summary.itl,
            "between tokens, of all requests together",
        ),
        ("E2E", &summary.e2e, to_end.as_str()),
        (
            "E2E, application",
            &summary.application_e2e,
            "the same, from when the application got it",
        ),
    ];
    let is_shown = |name: &str| is_arrival_known || !name.ends_with(", application");
    let figures = figures.into_iter().filter(|(name, ..)| is_shown(name));
    let mut rows = vec![
        ["", "n", "mean", "p50", "p90", "p99", "max", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut absent = Vec::new();
    for (name, figure, meaning) in figures {
        match figure.n {
            0 => absent.push(name),
            _ => rows.push(row(name, figure, meaning)),
        }
    }
    out.push_str(&table(&rows, 1..7));
    if !absent.is_empty() {
        let names = absent.join(", ");
        out.push_str(&format!(
            "  not in this trace: {names} (docs/time.md#names-that-the-report-knows has the events that say it)\n"
        ));
    }
}

/// Adds a line that names the requests left out of some figures.
fn put_out_of_order(of: &OutOfOrder, out: &mut String) {
    if of.requests == 0 {
        return;
    }
    let requests = counted(of.requests, "request has", "requests have");
    let ids: Vec<String> = of.request_ids.iter().map(|id| shown(id)).collect();
    let more = if of.requests > ids.len() as u64 {
        ", …"
    } else {
        ""
    };
    out.push_str(&format!(
        "  {requests} moments out of order, as when clocks of hosts are apart: left out of the figures between them ({}{more})\n",
        ids.join(", ")
    ));
}

/// Where the time goes: parts that add up.
fn put_parts(parts: &RequestParts, out: &mut String) {
    if parts.n == 0 {
        return;
    }
    let line = |name: &str, mean_ns: f64, p99_ns: i64, slowest_ns: i64| {
        vec![
            name.to_owned(),
            duration(mean_ns),
            share(mean_ns, parts.e2e_mean_ns),
            duration(p99_ns as f64),
            duration(slowest_ns as f64),
        ]
    };
    let head = [
        "where it goes",
        "mean",
        "share",
        "the p99 one",
        "the slowest",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for part in &parts.parts {
        rows.push(line(&part.name, part.mean_ns, part.p99_ns, part.slowest_ns));
    }
    let (mean_ns, p99_ns, slowest_ns) = (parts.e2e_mean_ns, parts.e2e_p99_ns, parts.e2e_slowest_ns);
    rows.push(line("E2E", mean_ns, p99_ns, slowest_ns));
    out.push_str(&table(&rows, 1..5));
}

/// The orders of phases, where there are several. One alone says no more than where the time goes.
fn put_phases(phases: &Phases, out: &mut String) {
    if phases.sequences.len() < 2 {
        return;
    }
    let head = ["phases", "n", "share", "mean", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for of in phases.sequences.iter().take(SEQUENCES) {
        let times: Vec<String> = of.phase_mean_ns.iter().map(|ns| duration(*ns)).collect();
        rows.push(vec![
            of.sequence.clone(),
            grouped(of.requests),
            share(of.requests as f64, phases.n as f64),
            duration(of.mean_ns),
            times.join(" → "),
        ]);
    }
    out.push_str(&table(&rows, 1..4));
    let more = phases.sequences.len().saturating_sub(SEQUENCES);
    if more > 0 {
        let more = counted(more as u64, "order", "orders");
        out.push_str(&format!("  {more} more (--csv phases)\n"));
    }
}

/// How little a few requests say: where their means lie with 95 %.
fn put_intervals(summary: &RequestSummary, out: &mut String) {
    let figures = [("TTFT, frontend", &summary.ttft), ("E2E", &summary.e2e)];
    let intervals = figures.into_iter().filter_map(|(name, figure)| {
        let few = of_mean(figure).filter(|_| figure.n < MANY)?;
        let width = duration(few.p95[1] - figure.mean_ns);
        Some(format!(
            "mean {name} {} ± {width}",
            duration(figure.mean_ns)
        ))
    });
    let intervals: Vec<String> = intervals.collect();
    if !intervals.is_empty() {
        let intervals = intervals.join(", ");
        out.push_str(&format!("  {intervals} (95 %, Student's t)\n"));
    }
}

fn row(name: &str, figure: &Quantiles, meaning: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        grouped(figure.n),
        duration(figure.mean_ns),
        duration(figure.p50_ns),
        duration(figure.p90_ns),
        duration(figure.p99_ns),
        duration(figure.max_ns as f64),
        meaning.to_owned(),
    ]
}

/// A row of the CSV: a request and what follows from its times.
#[derive(Serialize)]
struct CsvRow<'a> {
    #[serde(serialize_with = "serialize_text")]
    request_id: &'a str,
    status: crate::RequestStatus,
    #[serde(serialize_with = "serialize_text")]
    reason: Option<&'a str>,
    arrival_ns: Option<i64>,
    received_ns: Option<i64>,
    queue_ns: Option<i64>,
    prefill_ns: Option<i64>,
    decode_ns: Option<i64>,
    engine_ttft_ns: Option<i64>,
    ttft_ns: Option<i64>,
    application_ttft_ns: Option<i64>,
    tpot_ns: Option<i64>,
    e2e_ns: Option<i64>,
    application_e2e_ns: Option<i64>,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    preemptions: u64,
    preempted_ns: i64,
}

/// The requests as CSV, a line each.
///
/// # Errors
/// None that is known of: it is written to memory.
pub(super) fn csv(requests: &[Request]) -> Result<String, Error> {
    super::names::written(requests.iter().map(|request| CsvRow {
        request_id: request.request_id(),
        status: request.status(),
        reason: request.reason(),
        arrival_ns: request.arrival_ns(),
        received_ns: request.received_ns(),
        queue_ns: request.queue_ns(),
        prefill_ns: request.prefill_ns(),
        decode_ns: request.decode_ns(),
        engine_ttft_ns: request.engine_ttft_ns(),
        ttft_ns: request.ttft_ns(),
        application_ttft_ns: request.application_ttft_ns(),
        tpot_ns: request.tpot_ns(),
        e2e_ns: request.e2e_ns(),
        application_e2e_ns: request.application_e2e_ns(),
        prompt_tokens: request.prompt_tokens(),
        cached_tokens: request.cached_tokens(),
        output_tokens: request.output_tokens(),
        preemptions: request.preemptions(),
        preempted_ns: request.preempted_ns(),
    }))
}
