//! Adds the findings of a report to the trace as tracks, and chooses the part of the trace that a viewer shows first.

use crate::table::{RunReport, TraceRange, VerdictRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trace_merge::{AddedSpan, Addition};

/// Name of the process that holds the tracks.
const PROCESS: &str = "sa-profile: findings";
/// Maximum number of processes that a viewer expands at first.
const MOST_EXPANDED: usize = 8;

/// The part of a trace that a viewer shows first. It is stored as the member `view` of `otherData`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceView {
    /// Time of the first event, in ns on the trace's clock.
    pub begin_ns: i64,
    /// Time of the last event, in ns on the trace's clock.
    pub end_ns: i64,
    /// Start and end of the serving time, in ns on the trace's clock. `None` if the whole trace counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving_ns: Option<(i64, i64)>,
    /// Names of the processes whose tracks are expanded. Of processes whose names differ only in digits, such as
    /// workers, only the first is listed.
    pub expanded: Vec<String>,
}

impl TraceView {
    /// Returns the view of a run.
    fn new(report: &RunReport, times: &TraceTimes) -> TraceView {
        let serving = &report.serving;
        let serving_ns = (
            times.trace_ns(serving.from_ns),
            times.trace_ns(serving.to_ns),
        );
        let mut kinds = BTreeSet::new();
        let named = report
            .recorded
            .processes
            .iter()
            .filter(|process| process.events > 0);
        let names = named.filter_map(|of| of.name.as_ref());
        let firsts = names.filter(|name| {
            let kind = name.chars().filter(|char| !char.is_ascii_digit());
            kinds.insert(kind.collect::<String>())
        });
        TraceView {
            begin_ns: times.trace_ns(times.ends_ns.0),
            end_ns: times.trace_ns(times.ends_ns.1),
            serving_ns: (!serving.is_whole).then_some(serving_ns),
            expanded: firsts.take(MOST_EXPANDED).cloned().collect(),
        }
    }
}

/// Converts times of a report to times of a trace.
pub(crate) struct TraceTimes {
    /// Times of the first and the last event, in ns on the report's clock.
    pub(crate) ends_ns: (i64, i64),
    /// Time of the trace at which the report's clock is 0, in ns.
    pub(crate) base_ns: i64,
}

impl TraceTimes {
    /// Converts a time of the report to the trace's clock.
    fn trace_ns(&self, ns: i64) -> i64 {
        ns.saturating_add(self.base_ns)
    }
}

/// Returns the part of a trace to show first, and the tracks with the verdict and the findings. A finding without a
/// place covers the serving time.
pub(crate) fn findings_track(report: &RunReport, times: &TraceTimes) -> (TraceView, Addition) {
    let mut view = TraceView::new(report, times);
    let (verdict, serving) = (&report.verdict, &report.serving);
    let span = |track: &str, name: &str, place: Option<TraceRange>, args: Value| {
        let place = place.unwrap_or(TraceRange {
            from_ns: serving.from_ns,
            dur_ns: serving.to_ns.saturating_sub(serving.from_ns),
        });
        AddedSpan {
            track: track.to_owned(),
            name: name.to_owned(),
            from_ns: times.trace_ns(place.from_ns),
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
