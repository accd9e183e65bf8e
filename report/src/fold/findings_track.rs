//! A report → the rows with its findings in the trace, and the part of the trace that a viewer shows first.

use crate::table::{Place, RunReport, VerdictRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trace_merge::{AddedSpan, Addition};

/// Name of the process with the rows.
const PROCESS: &str = "sa-profile: findings";
/// Maximum number of processes whose rows a viewer shows at first.
const MOST_EXPANDED: usize = 8;

/// The part of a trace that a viewer shows first: the member `view` of `otherData`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceView {
    /// Time of the first event, in ns as the trace has it.
    pub begin_ns: i64,
    /// Time of the last event, in ns as the trace has it.
    pub end_ns: i64,
    /// Start and end of the serving time, in ns as the trace has them. `None` if the whole trace counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving_ns: Option<(i64, i64)>,
    /// Names of the processes whose rows are shown. Of several processes with names that differ only in digits, such as workers, it is the first.
    pub expanded: Vec<String>,
}

impl TraceView {
    /// Returns the view of a run.
    fn of(report: &RunReport, times: &TraceTimes) -> TraceView {
        let serving = &report.serving;
        let serving_ns = (times.shown(serving.from_ns), times.shown(serving.to_ns));
        let mut kinds = BTreeSet::new();
        let named = report.recorded.processes.iter().filter(|of| of.events > 0);
        let names = named.filter_map(|of| of.name.as_ref());
        let firsts = names.filter(|name| {
            let kind = name.chars().filter(|char| !char.is_ascii_digit());
            kinds.insert(kind.collect::<String>())
        });
        TraceView {
            begin_ns: times.shown(times.ends_ns.0),
            end_ns: times.shown(times.ends_ns.1),
            serving_ns: (!serving.is_whole).then_some(serving_ns),
            expanded: firsts.take(MOST_EXPANDED).cloned().collect(),
        }
    }
}

/// Converts times of a report to times of a trace.
pub(crate) struct TraceTimes {
    /// Times of the first and the last event, in ns as the report has them.
    pub(crate) ends_ns: (i64, i64),
    /// Time of the trace at which the report's times begin, in ns.
    pub(crate) base_ns: i64,
}

impl TraceTimes {
    /// Returns a time of the report as the trace has it.
    fn shown(&self, ns: i64) -> i64 {
        ns.saturating_add(self.base_ns)
    }
}

/// Returns the part of a trace to show first, and the verdict and the findings of its report as rows. A finding without a place spans the serving time.
pub(crate) fn findings_track(report: &RunReport, times: &TraceTimes) -> (TraceView, Addition) {
    let mut view = TraceView::of(report, times);
    let (verdict, serving) = (&report.verdict, &report.serving);
    let span = |row: &str, name: &str, place: Option<Place>, args: Value| {
        let place = place.unwrap_or(Place {
            from_ns: serving.from_ns,
            dur_ns: serving.to_ns.saturating_sub(serving.from_ns),
        });
        AddedSpan {
            row: row.to_owned(),
            name: name.to_owned(),
            from_ns: times.shown(place.from_ns),
            dur_ns: place.dur_ns,
            args,
        }
    };
    let answer = (verdict.rule != VerdictRule::Unknown).then(|| {
        let args = json!({
            "rule": verdict.rule, "advice": verdict.advice, "evidence": verdict.evidence,
        });
        span("verdict", &verdict.text, verdict.place, args)
    });
    let findings = report.findings.iter().map(|finding| {
        let name = finding.rule.replace('_', " ");
        let args = json!({
            "evidence": finding.evidence, "advice": finding.advice,
            "cost": finding.cost, "of": finding.of, "waited": finding.waited,
        });
        span("finding", &name, finding.place, args)
    });
    let spans: Vec<AddedSpan> = answer.into_iter().chain(findings).collect();
    if !spans.is_empty() {
        view.expanded.insert(0, PROCESS.to_owned());
    }
    let addition = Addition {
        process: PROCESS.to_owned(),
        spans,
        view: json!(view),
    };
    (view, addition)
}
