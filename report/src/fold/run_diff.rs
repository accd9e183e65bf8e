//! Reports of two sides → what differs.

use crate::quantiles::Quantiles;
use crate::statistics::{mann_whitney_in_order, ratio_interval};
use crate::table::{
    IdleCause, IdleDiff, Metric, MetricDiff, NameDiff, NameFigures, NameTime, RowKind, RunDiff,
    RunReport,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SCHEMA: u32 = 1;

/// What differs between two sides of one or more runs each. The requests of a side count together; names, rates and causes are those of its mean run.
pub fn compare(one: &[RunReport], other: &[RunReport]) -> RunDiff {
    let (one, other) = (Side(one), Side(other));
    let metrics = Metric::ALL.into_iter().map(|of| metric(of, one, other));
    let both = |of: fn(&RunReport) -> Option<f64>| (one.mean(of), other.mean(of));
    RunDiff {
        schema: SCHEMA,
        runs: (one.0.len(), other.0.len()),
        requests: (one.requests(), other.requests()),
        requests_per_s: both(|run| run.requests.requests_per_s),
        output_tokens_per_s: both(|run| run.requests.output_tokens_per_s),
        metrics: metrics.filter(|of| of.one.n + of.other.n > 0).collect(),
        idle: idle(one, other),
        names: names(one, other),
    }
}

/// The runs of one side.
#[derive(Clone, Copy)]
struct Side<'a>(&'a [RunReport]);

impl<'a> Side<'a> {
    fn requests(self) -> u64 {
        self.0.iter().map(|run| run.requests.n).sum()
    }

    /// The mean of those runs that have a figure.
    fn mean(self, of: fn(&RunReport) -> Option<f64>) -> Option<f64> {
        let found: Vec<f64> = self.0.iter().filter_map(of).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    }

    /// A figure of each request that was answered.
    fn values(self, of: Metric) -> Vec<i64> {
        let requests = self.0.iter().flat_map(|run| &run.request);
        let answered = requests.filter(|request| request.is_ok());
        answered.filter_map(|request| of.of(request)).collect()
    }

    /// The mean share of the devices' time that a cause had.
    fn idle_share(self, cause: IdleCause) -> f64 {
        let shares = self.0.iter().map(|run| run.idle_share(cause));
        shares.sum::<f64>() / self.0.len().max(1) as f64
    }

    /// Times between tokens. Their percentiles over several runs are means of the runs', each by its number of tokens.
    fn between_tokens(self) -> Quantiles {
        let of = self.0.iter().map(|run| &run.requests.itl);
        Quantiles::joined(of.filter(|of| of.n > 0))
    }

    /// The names of the mean run.
    fn names(self) -> BTreeMap<NameKey<'a>, NameFigures> {
        let mut all: BTreeMap<NameKey<'_>, Vec<&NameTime>> = BTreeMap::new();
        for name in self.0.iter().flat_map(|run| &run.names) {
            let key = (name.row_kind, name.category.as_str(), name.name.as_str());
            all.entry(key).or_default().push(name);
        }
        let runs = self.0.len();
        let figures = |(key, of): (_, Vec<&NameTime>)| (key, figures(&of, runs));
        all.into_iter().map(figures).collect()
    }
}

type NameKey<'a> = (RowKind, &'a str, &'a str);

fn metric(of: Metric, one: Side<'_>, other: Side<'_>) -> MetricDiff {
    let (first, second) = (one.values(of), other.values(of));
    let figures = |side: Side<'_>, values: &[i64]| match of {
        Metric::Itl => side.between_tokens(),
        _ => Quantiles::of(values.to_vec()),
    };
    let (one, other) = (figures(one, &first), figures(other, &second));
    let has_both = one.n > 0 && other.n > 0 && one.mean_ns > 0.0;
    MetricDiff {
        metric: of,
        ratio: has_both.then(|| other.mean_ns / one.mean_ns),
        ratio_interval: ratio_interval(&first, &second),
        p_value: mann_whitney_in_order(&first, &second),
        one,
        other,
    }
}

fn idle(one: Side<'_>, other: Side<'_>) -> Vec<IdleDiff> {
    let of = |cause| IdleDiff {
        cause,
        one: one.idle_share(cause),
        other: other.idle_share(cause),
    };
    let mut idle: Vec<IdleDiff> = IdleCause::ALL.into_iter().map(of).collect();
    idle.retain(|of| of.one > 0.0 || of.other > 0.0);
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

/// The figures of a name in the mean of so many runs, some of which may not have it.
fn figures(names: &[&NameTime], runs: usize) -> NameFigures {
    let calls: u64 = names.iter().map(|name| name.ncall).sum();
    let runs = i64::try_from(runs.max(1)).unwrap_or(i64::MAX);
    let mean = |of: fn(&NameTime) -> i64| {
        let sum = names
            .iter()
            .map(|name| of(name))
            .fold(0, i64::saturating_add);
        sum / runs
    };
    let by_calls = |of: fn(&NameTime) -> f64| {
        let sum: f64 = names.iter().map(|name| of(name) * name.ncall as f64).sum();
        sum / calls.max(1) as f64
    };
    NameFigures {
        ncall: calls / runs.unsigned_abs(),
        tsub_ns: mean(|name| name.tsub_ns),
        ttot_ns: mean(|name| name.ttot_ns),
        mean_ns: by_calls(|name| name.duration.mean_ns),
        p95_ns: by_calls(|name| name.duration.p95_ns),
    }
}
