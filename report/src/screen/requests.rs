//! The requests.

use super::amount::{cells, counted, duration, figures_table, grouped, share};
use super::names::request_id;
use super::recorded::clock_note;
use crate::intervals::of_mean;
use crate::table::{OutOfOrder, Phases, RequestFigure, RequestParts, RequestSummary, RunReport};

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

/// Returns the figures of the requests of a report.
pub(crate) fn request_figures(report: &RunReport) -> Vec<RequestFigure<'_>> {
    let mut requests = report.request.iter();
    let is_streamed = requests.any(|one| one.ttft_end_ns() != one.first_token_ns);
    report.requests.figures(is_streamed)
}

/// Adds a row for each figure that the trace has.
fn put_figures(report: &RunReport, out: &mut String) {
    let mut rows = vec![cells("|n|mean|p50|p90|p99|max|")];
    let figures = request_figures(report);
    let (known, absent): (Vec<_>, Vec<_>) = figures.iter().partition(|one| one.quantiles.n > 0);
    rows.extend(known.into_iter().map(row));
    out.push_str(&figures_table(&rows, 1..7));
    if !absent.is_empty() {
        let names: Vec<&str> = absent.iter().map(|figure| figure.name).collect();
        out.push_str(&format!(
            "  not in this trace: {} (docs/time.md#names-that-the-report-knows has the events that say it)\n",
            names.join(", ")
        ));
    }
}

/// Adds a line that names the requests left out of some figures.
fn put_out_of_order(of: &OutOfOrder, out: &mut String) {
    if of.requests == 0 {
        return;
    }
    let requests = counted(of.requests, "request has", "requests have");
    let ids: Vec<String> = of.request_ids.iter().map(|id| request_id(id)).collect();
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
    let mut rows = vec![cells("where it goes|mean|share|the p99 one|the slowest")];
    for part in &parts.parts {
        rows.push(line(&part.name, part.mean_ns, part.p99_ns, part.slowest_ns));
    }
    let (mean_ns, p99_ns, slowest_ns) = (parts.e2e_mean_ns, parts.e2e_p99_ns, parts.e2e_slowest_ns);
    rows.push(line("E2E", mean_ns, p99_ns, slowest_ns));
    out.push_str(&figures_table(&rows, 1..5));
}

/// The orders of phases, where there are several. One alone says no more than where the time goes.
fn put_phases(phases: &Phases, out: &mut String) {
    if phases.sequences.len() < 2 {
        return;
    }
    let mut rows = vec![cells("phases|n|share|mean|")];
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
    out.push_str(&figures_table(&rows, 1..4));
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

fn row(figure: &RequestFigure<'_>) -> Vec<String> {
    let of = figure.quantiles;
    vec![
        figure.name.to_owned(),
        grouped(of.n),
        duration(of.mean_ns),
        duration(of.p50_ns),
        duration(of.p90_ns),
        duration(of.p99_ns),
        duration(of.max_ns as f64),
        figure.meaning.clone(),
    ]
}
