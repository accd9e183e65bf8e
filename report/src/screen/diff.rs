//! Two runs side by side.

use super::amount::{duration, grouped, share, table};
use super::idle;
use super::names::shown;
use crate::table::row_kind::RowKind;
use crate::table::run_diff::{MetricDiff, NameDiff, NameFigures, RunDiff};

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

fn rows(head: &[&str]) -> Vec<Vec<String>> {
    vec![head.iter().map(|cell| (*cell).to_owned()).collect()]
}

fn put_requests(diff: &RunDiff, out: &mut String) {
    if diff.runs != (1, 1) {
        let (one, other) = diff.runs;
        out.push_str(&format!(
            "runs       {one} and {other}; rates, idle causes and names are those of the mean run\n"
        ));
    }
    let (one, other) = diff.requests;
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"));
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
    let head = [
        "",
        "mean",
        "",
        "p95",
        "",
        "p99",
        "",
        "change",
        "95 % interval",
        "p",
        "",
    ];
    let mut lines = rows(&head);
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

fn figure(n: u64, ns: f64) -> String {
    match n {
        0 => "–".to_owned(),
        _ => duration(ns),
    }
}

fn change(ratio: Option<f64>) -> String {
    ratio.map_or_else(
        || "–".to_owned(),
        |ratio| format!("{:+.1} %", 100.0 * (ratio - 1.0)),
    )
}

fn interval(of: &MetricDiff) -> String {
    of.ratio_interval.map_or_else(
        || "–".to_owned(),
        |(low, high)| {
            format!(
                "{:+.1} to {:+.1} %",
                100.0 * (low - 1.0),
                100.0 * (high - 1.0)
            )
        },
    )
}

fn probability(of: &MetricDiff) -> String {
    match of.p_value {
        None => "–".to_owned(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
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
    let mut lines = rows(&["", "first", "second", "change", ""]);
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
    let mut lines = rows(&[
        "name", "ncall", "", "tsub", "", "more", "mean", "", "p95", "", "",
    ]);
    lines.extend(diff.names.iter().take(NAMES).map(name_row));
    out.push_str(&table(&lines, 1..10));
}

fn name_row(name: &NameDiff) -> Vec<String> {
    let kind = match name.row_kind {
        RowKind::Thread => "",
        RowKind::Async => " [async]",
        RowKind::Track => " [track]",
        RowKind::Region => " [region]",
    };
    let pair = |of: &dyn Fn(&NameFigures) -> String| {
        [name.one, name.other].map(|figures| figures.as_ref().map_or_else(|| "–".to_owned(), of))
    };
    let mut row = vec![format!("{}{kind}", shown(&name.name))];
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
