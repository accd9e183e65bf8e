//! Compares the reports of two sides.

use super::diff_headline::headline;
use super::diff_side::{NameKey, Side};
use crate::statistics::quantiles::Quantiles;
use crate::statistics::{mann_whitney, mann_whitney_in_order, ratio_interval};
use crate::table::{
    Headline, IdleCause, IdleDiff, LoadDiff, LoadFigure, Metric, MetricDiff, NameDiff, NameFigures,
    PartDiff, RunDiff, RunReport, SettingDiff, SettingDiffs,
};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SCHEMA: u32 = 1;

/// Compares two sides of one or more runs each. The requests of all runs of a side count together. Other figures are
/// means over its runs.
pub fn compare(one: &[RunReport], other: &[RunReport]) -> RunDiff {
    let (one, other) = (Side(one), Side(other));
    let are_closed = one.is_closed_loop() && other.is_closed_loop();
    let metrics = Metric::ALL.into_iter();
    let metrics = metrics.map(|kind| metric(kind, one, other, are_closed));
    let both = |figure: fn(&RunReport) -> Option<f64>| (one.mean(figure), other.mean(figure));
    let diff = RunDiff {
        schema: SCHEMA,
        headline: Headline::NoChange,
        runs: (one.0.len(), other.0.len()),
        wall_ns: (one.wall_ns(), other.wall_ns()),
        verdicts: (one.verdicts(), other.verdicts()),
        settings: settings(one, other),
        requests: (one.requests(), other.requests()),
        answered: (one.answered(), other.answered()),
        requests_per_s: both(|run| run.requests.requests_per_s),
        output_tokens_per_s: both(|run| run.requests.output_tokens_per_s),
        load: load(one, other),
        metrics: metrics
            .filter(|diff| diff.one.n + diff.other.n > 0)
            .collect(),
        parts: parts(one, other),
        busy: (one.busy(), other.busy()),
        idle: idle(one, other),
        names: names(one, other),
    };
    RunDiff {
        headline: headline(&diff, one, other),
        ..diff
    }
}

fn settings(one: Side<'_>, other: Side<'_>) -> Option<SettingDiffs> {
    let (mut one, other) = (one.settings(), other.settings());
    if one.is_empty() || other.is_empty() {
        return None;
    }
    // Engines may be listed in a different order.
    let is_same = |one: &[&Value], other: &[&Value]| {
        one.len() == other.len() && one.iter().all(|value| other.contains(value))
    };
    let mut found = SettingDiffs::default();
    for name in other.keys() {
        one.entry(name).or_default();
    }
    for (name, one) in one {
        let other = other.get(name).map(Vec::as_slice).unwrap_or_default();
        let values = |side: &[&Value]| side.iter().copied().cloned().collect();
        match is_same(&one, other) {
            true => found.same += 1,
            false => found.different.push(SettingDiff {
                name: name.to_owned(),
                one: values(&one),
                other: values(other),
            }),
        }
    }
    Some(found)
}

fn load(one: Side<'_>, other: Side<'_>) -> Vec<LoadDiff> {
    let diff = |figure| LoadDiff {
        of: figure,
        one: one.load(figure),
        other: other.load(figure),
    };
    let load = LoadFigure::ALL.into_iter().map(diff);
    load.filter(|diff| diff.one.is_some() || diff.other.is_some())
        .collect()
}

/// Compares the parts of a request's time. Parts that only the second side has come last.
fn parts(one: Side<'_>, other: Side<'_>) -> Vec<PartDiff> {
    let (one, other) = (one.parts(), other.parts());
    let ns = |side: &[(&str, f64)], name: &str| {
        let found = side.iter().find(|(part, _)| *part == name);
        found.map(|(_, ns)| *ns)
    };
    let new = other.iter().filter(|(name, _)| ns(&one, name).is_none());
    let names = one.iter().chain(new).map(|(name, _)| *name);
    let part = |name: &str| PartDiff {
        name: name.to_owned(),
        one_ns: ns(&one, name),
        other_ns: ns(&other, name),
    };
    names.map(part).collect()
}

/// Compares one metric. In a closed loop, no burst of arrivals makes many requests slow by chance, so each request
/// counts fully.
fn metric(metric: Metric, one: Side<'_>, other: Side<'_>, are_closed: bool) -> MetricDiff {
    let test = match are_closed {
        true => mann_whitney,
        false => mann_whitney_in_order,
    };
    let (first, second) = (one.values(metric), other.values(metric));
    let figures = |side: Side<'_>, values: &[i64]| match metric {
        Metric::Itl => side.between_tokens(),
        _ => Quantiles::from_values(values.to_vec()),
    };
    let (one, other) = (figures(one, &first), figures(other, &second));
    let has_both = one.n > 0 && other.n > 0 && one.mean_ns > 0.0;
    MetricDiff {
        metric,
        ratio: has_both.then(|| other.mean_ns / one.mean_ns),
        ratio_interval: ratio_interval(&first, &second),
        p_value: test(&first, &second),
        one,
        other,
    }
}

fn idle(one: Side<'_>, other: Side<'_>) -> Vec<IdleDiff> {
    let diff = |cause| IdleDiff {
        cause,
        one: one.idle_share(cause),
        other: other.idle_share(cause),
    };
    let mut idle: Vec<IdleDiff> = IdleCause::ALL.into_iter().map(diff).collect();
    idle.retain(|diff| diff.one > 0.0 || diff.other > 0.0);
    idle.sort_by(|a, b| (b.other - b.one).total_cmp(&(a.other - a.one)));
    idle
}

fn names(one: Side<'_>, other: Side<'_>) -> Vec<NameDiff> {
    type Pair = [Option<NameFigures>; 2];
    let mut all: BTreeMap<NameKey<'_>, Pair> = BTreeMap::new();
    for (nth, side) in [one, other].into_iter().enumerate() {
        for (key, figures) in side.names() {
            all.entry(key).or_default()[nth] = Some(figures);
        }
    }
    let mut names: Vec<NameDiff> = all
        .into_iter()
        .map(|((row_kind, category, name), [one, other])| NameDiff {
            row_kind,
            category: category.to_owned(),
            name: name.to_owned(),
            one,
            other,
        })
        .collect();
    names.sort_by_key(|name| Reverse(name.more_ns().unsigned_abs()));
    names
}
