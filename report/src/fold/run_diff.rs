//! Two reports → what differs.

use crate::quantiles::Quantiles;
use crate::statistics::{mann_whitney, ratio_interval};
use crate::table::device_idle::IdleCause;
use crate::table::metric::Metric;
use crate::table::name_time::NameTime;
use crate::table::request::RequestStatus;
use crate::table::row_kind::RowKind;
use crate::table::run_diff::{IdleDiff, MetricDiff, NameDiff, NameFigures, RunDiff};
use crate::table::run_report::RunReport;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SCHEMA: u32 = 1;

/// What differs between two runs.
pub fn compare(one: &RunReport, other: &RunReport) -> RunDiff {
    let of_requests = [one, other].map(|report| &report.requests);
    let [first, second] = of_requests;
    let metrics = Metric::ALL.into_iter().map(|of| metric(of, one, other));
    RunDiff {
        schema: SCHEMA,
        requests: (first.n, second.n),
        requests_per_s: (first.requests_per_s, second.requests_per_s),
        output_tokens_per_s: (first.output_tokens_per_s, second.output_tokens_per_s),
        metrics: metrics.filter(|of| of.one.n + of.other.n > 0).collect(),
        idle: idle(one, other),
        names: names(one, other),
    }
}

fn metric(of: Metric, one: &RunReport, other: &RunReport) -> MetricDiff {
    let values = |report: &RunReport| -> Vec<i64> {
        let answered = report
            .request
            .iter()
            .filter(|request| request.status == RequestStatus::Ok);
        answered.filter_map(|request| of.of(request)).collect()
    };
    let (first, second) = (values(one), values(other));
    let figures = |report: &RunReport, values: &[i64]| match of {
        Metric::Itl => report.requests.itl,
        _ => Quantiles::of(values.to_vec()),
    };
    let (one, other) = (figures(one, &first), figures(other, &second));
    let has_both = one.n > 0 && other.n > 0 && one.mean_ns > 0.0;
    MetricDiff {
        metric: of,
        ratio: has_both.then(|| other.mean_ns / one.mean_ns),
        ratio_interval: ratio_interval(&first, &second),
        p_value: mann_whitney(&first, &second),
        one,
        other,
    }
}

fn idle(one: &RunReport, other: &RunReport) -> Vec<IdleDiff> {
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

fn names(one: &RunReport, other: &RunReport) -> Vec<NameDiff> {
    type Pair = [Option<NameFigures>; 2];
    let mut all: BTreeMap<(RowKind, &str, &str), Pair> = BTreeMap::new();
    for (nth, report) in [one, other].into_iter().enumerate() {
        for name in &report.names {
            let pair = all
                .entry((name.row_kind, &name.category, &name.name))
                .or_default();
            pair[nth] = Some(figures(name));
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

fn figures(name: &NameTime) -> NameFigures {
    NameFigures {
        ncall: name.ncall,
        tsub_ns: name.tsub_ns,
        ttot_ns: name.ttot_ns,
        mean_ns: name.duration.mean_ns,
        p95_ns: name.duration.p95_ns,
    }
}
