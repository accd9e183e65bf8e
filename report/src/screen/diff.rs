//! Two runs side by side.

use super::amount::{cells, duration, grouped, share, table};
use super::idle;
use super::names::of_kind;
use crate::table::{MetricDiff, NameDiff, NameFigures, RunDiff};

/// Names that are shown: those whose time changed most.
const NAMES: usize = 15;

/// The whole screen.
pub fn diff_text(diff: &RunDiff) -> String {
    let mut out = String::new();
    put_requests(diff, &mut out);
    put_idle(diff, &mut out);
    put_names(diff, &mut out);
    out
}

fn put_requests(diff: &RunDiff, out: &mut String) {
    if diff.runs != (1, 1) {
        let (one, other) = diff.runs;
        out.push_str(&format!(
            "runs       {one} and {other}; rates, idle causes and names are those of the mean run\n"
        ));
    }
    let (one, other) = diff.requests;
    let rate = |rate: Option<f64>| or_dash(rate.map(|rate| format!("{rate:.1}")));
    out.push_str(&format!(
        "requests   {} and {}; {} and {} a second; {} and {} output tokens a second\n",
        grouped(one),
        grouped(other),
        rate(diff.requests_per_s.0),
        rate(diff.requests_per_s.1),
        rate(diff.output_tokens_per_s.0),
        rate(diff.output_tokens_per_s.1)
    ));
    if diff.metrics.is_empty() {
        out.push('\n');
        return;
    }
    let mut lines = vec![cells("|mean||p95||p99||change|95 % interval|p|")];
    for of in &diff.metrics {
        let mut line = vec![of.metric.name().to_owned()];
        let (one, other) = (&of.one, &of.other);
        let pairs = [
            (one.mean_ns, other.mean_ns),
            (one.p95_ns, other.p95_ns),
            (one.p99_ns, other.p99_ns),
        ];
        for (first, second) in pairs {
            line.extend([figure(one.n, first), figure(other.n, second)]);
        }
        line.extend([
            change(of.ratio),
            interval(of),
            probability(of),
            verdict(of).to_owned(),
        ]);
        lines.push(line);
    }
    out.push_str(&table(&lines, 1..10));
    out.push_str("  the change is of the mean; both tests have to tell the runs apart: the interval (bootstrap) and p (Mann-Whitney)\n\n");
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

fn figure(n: u64, ns: f64) -> String {
    or_dash((n > 0).then(|| duration(ns)))
}

/// Returns by how many percent a ratio is more than 1.
fn percent(ratio: f64) -> String {
    format!("{:+.1}", 100.0 * (ratio - 1.0))
}

fn change(ratio: Option<f64>) -> String {
    or_dash(ratio.map(|ratio| percent(ratio) + " %"))
}

fn interval(of: &MetricDiff) -> String {
    let words = |(low, high)| format!("{} to {} %", percent(low), percent(high));
    or_dash(of.ratio_interval.map(words))
}

fn probability(of: &MetricDiff) -> String {
    or_dash(of.p_value.map(|p| match p < 0.001 {
        true => "< 0.001".to_owned(),
        false => format!("{p:.3}"),
    }))
}

fn verdict(of: &MetricDiff) -> &'static str {
    match of.is_clear() {
        true if of.ratio.is_some_and(|ratio| ratio > 1.0) => "slower",
        true => "faster",
        false if of.p_value.is_none() => "",
        false => "no clear difference",
    }
}

fn put_idle(diff: &RunDiff, out: &mut String) {
    if diff.idle.is_empty() {
        return;
    }
    out.push_str("idle       share of the devices' time, what grew most first\n");
    let mut lines = vec![cells("|first|second|change|")];
    for of in &diff.idle {
        let (name, meaning) = idle::words(of.cause);
        lines.push(vec![
            name.to_owned(),
            share(of.one, 1.0),
            share(of.other, 1.0),
            format!("{:+.1} points", 100.0 * (of.other - of.one)),
            meaning.to_owned(),
        ]);
    }
    out.push_str(&table(&lines, 1..4));
    out.push('\n');
}

fn put_names(diff: &RunDiff, out: &mut String) {
    let n = diff.names.len().min(NAMES);
    out.push_str(&format!(
        "names      {n} of {} whose time by itself (tsub) changed most\n",
        grouped(diff.names.len() as u64)
    ));
    let mut lines = vec![cells("name|ncall||tsub||more|mean||p95||")];
    lines.extend(diff.names.iter().take(NAMES).map(name_row));
    out.push_str(&table(&lines, 1..10));
}

fn name_row(name: &NameDiff) -> Vec<String> {
    let pair = |of: &dyn Fn(&NameFigures) -> String| {
        [name.one, name.other].map(|figures| or_dash(figures.as_ref().map(of)))
    };
    let mut row = vec![of_kind(&name.name, name.row_kind)];
    row.extend(pair(&|of| grouped(of.ncall)));
    row.extend(pair(&|of| duration(of.tsub_ns as f64)));
    let more_ns = name.more_ns();
    let sign = if more_ns > 0 { "+" } else { "" };
    row.push(format!("{sign}{}", duration(more_ns as f64)));
    row.extend(pair(&|of| duration(of.mean_ns)));
    row.extend(pair(&|of| duration(of.p95_ns)));
    row.push(match (name.one, name.other) {
        (None, _) => "added".to_owned(),
        (_, None) => "gone".to_owned(),
        _ => String::new(),
    });
    row
}
