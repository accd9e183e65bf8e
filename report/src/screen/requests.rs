//! Figures of the requests.

use super::amount::{cells, counted, duration, figures_table, grouped, share};
use super::names::request_id;
use super::recorded::clock_note;
use crate::intervals::mean_intervals;
use crate::table::{OutOfOrder, Phases, RequestFigure, RequestParts, RequestSummary, RunReport};

/// Number of requests from which on the confidence intervals of the means are left out.
const MANY: u64 = 30;
/// Maximum number of phase sequences that are shown.
const SEQUENCES: usize = 5;

pub(super) fn write(report: &RunReport, out: &mut String) {
    let summary = &report.requests;
    if summary.n == 0 {
        out.push_str("requests   none: no event has a request_id (docs/time.md lists the events to record)\n");
        return;
    }
    out.push_str(&outcomes(summary));
    let all = 0..report.recorded.processes.len();
    out.push_str(&clock_note(&report.recorded, all));
    out.push('\n');
    if let Some(goodput) = &summary.goodput {
        let rate = goodput.requests_per_s.unwrap_or(0.0);
        let good = share(goodput.requests as f64, summary.n as f64);
        let met = grouped(goodput.requests);
        out.push_str(&format!(
            "  goodput: {met} ({good}) met the objectives, {rate:.1} per second\n"
        ));
    }
    write_figures(report, out);
    write_out_of_order(&summary.out_of_order, out);
    write_parts(&report.request_parts, out);
    write_phases(&report.phases, out);
    if summary.n < 30 {
        out.push_str(&format!(
            "  p90 and p99 of only {} say little\n",
            counted(summary.n, "request", "requests")
        ));
    }
    write_intervals(summary, out);
}

/// Returns the line with the number of requests, how they ended, and how many requests and output tokens the server
/// answered per second.
pub(super) fn outcomes(summary: &RequestSummary) -> String {
    let ends = [
        (summary.ok, "ok"),
        (summary.failed, "failed"),
        (summary.aborted, "aborted"),
        (summary.unfinished, "unfinished"),
    ];
    let ends: Vec<_> = ends.into_iter().filter(|(n, _)| *n > 0).collect();
    let words = match ends[..] {
        [(1, word)] => format!(", {word}"),
        [(_, word)] => format!(", all {word}"),
        _ => {
            let ends = ends
                .iter()
                .map(|(n, word)| format!("{} {word}", grouped(*n)));
            format!(": {}", ends.collect::<Vec<_>>().join(", "))
        }
    };
    let mut line = format!("requests   {}{words}", grouped(summary.n));
    if let Some(rate) = summary.requests_per_s {
        line += &format!("; {rate:.1} answered per second");
    }
    if let Some(rate) = summary.output_tokens_per_s {
        line += &format!(", {rate:.0} output tokens per second");
    }
    line
}

/// Returns the latency figures of a report's requests, such as TTFT, each with its meaning and its quantiles.
pub(crate) fn request_figures(report: &RunReport) -> Vec<RequestFigure<'_>> {
    let mut requests = report.request.iter();
    let is_streamed = requests.any(|one| one.ttft_end_ns() != one.first_token_ns);
    report.requests.figures(is_streamed)
}

/// Writes a row for each latency figure that the trace contains, and a line with the names of the others.
fn write_figures(report: &RunReport, out: &mut String) {
    let mut rows = vec![cells("|n|mean|p50|p90|p99|max|")];
    let figures = request_figures(report);
    let (present, absent): (Vec<_>, Vec<_>) = figures.iter().partition(|one| one.quantiles.n > 0);
    rows.extend(present.into_iter().map(row));
    out.push_str(&figures_table(&rows, 1..7));
    if !absent.is_empty() {
        let names: Vec<&str> = absent.iter().map(|figure| figure.name).collect();
        out.push_str(&format!(
            "  not recorded: {} (docs/time.md#names-that-the-report-knows lists the events for these figures)\n",
            names.join(", ")
        ));
    }
}

/// Writes which requests are left out of some figures because their events are out of order.
fn write_out_of_order(out_of_order: &OutOfOrder, out: &mut String) {
    if out_of_order.requests == 0 {
        return;
    }
    let requests = counted(out_of_order.requests, "request has", "requests have");
    let ids: Vec<String> = out_of_order
        .request_ids
        .iter()
        .map(|id| request_id(id))
        .collect();
    let more = if out_of_order.requests > ids.len() as u64 {
        ", …"
    } else {
        ""
    };
    out.push_str(&format!(
        "  {requests} events out of order, for example because host clocks differ; figures between these events leave them out ({}{more})\n",
        ids.join(", ")
    ));
}

/// Writes the parts of the mean request, which add up to its E2E.
fn write_parts(parts: &RequestParts, out: &mut String) {
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
    let mut rows = vec![cells(
        "where time goes|mean|share|p99 request|slowest request",
    )];
    for part in &parts.parts {
        rows.push(line(&part.name, part.mean_ns, part.p99_ns, part.slowest_ns));
    }
    let (mean_ns, p99_ns, slowest_ns) = (parts.e2e_mean_ns, parts.e2e_p99_ns, parts.e2e_slowest_ns);
    rows.push(line("E2E", mean_ns, p99_ns, slowest_ns));
    out.push_str(&figures_table(&rows, 1..5));
}

/// Writes the sequences of phases, such as `queue → prefill → decode`, that requests went through. Writes nothing if
/// there is only one, because the parts of the mean request already show it.
fn write_phases(phases: &Phases, out: &mut String) {
    if phases.sequences.len() < 2 {
        return;
    }
    let mut rows = vec![cells("phases|n|share|mean|")];
    for sequence in phases.sequences.iter().take(SEQUENCES) {
        let times: Vec<String> = sequence
            .phase_mean_ns
            .iter()
            .map(|ns| duration(*ns))
            .collect();
        rows.push(vec![
            sequence.sequence.clone(),
            grouped(sequence.requests),
            share(sequence.requests as f64, phases.n as f64),
            duration(sequence.mean_ns),
            times.join(" → "),
        ]);
    }
    out.push_str(&figures_table(&rows, 1..4));
    let more = phases.sequences.len().saturating_sub(SEQUENCES);
    if more > 0 {
        let more = counted(more as u64, "sequence", "sequences");
        out.push_str(&format!("  {more} more (--csv phases)\n"));
    }
}

/// Writes the 95 % confidence intervals of the means if there are few requests.
fn write_intervals(summary: &RequestSummary, out: &mut String) {
    let figures = [("TTFT, frontend", &summary.ttft), ("E2E", &summary.e2e)];
    let intervals = figures.into_iter().filter_map(|(name, figure)| {
        let few = mean_intervals(figure).filter(|_| figure.n < MANY)?;
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

/// Returns the row of a latency figure.
fn row(figure: &RequestFigure<'_>) -> Vec<String> {
    let quantiles = figure.quantiles;
    vec![
        figure.name.to_owned(),
        grouped(quantiles.n),
        duration(quantiles.mean_ns),
        duration(quantiles.p50_ns),
        duration(quantiles.p90_ns),
        duration(quantiles.p99_ns),
        duration(quantiles.max_ns as f64),
        figure.meaning.clone(),
    ]
}
