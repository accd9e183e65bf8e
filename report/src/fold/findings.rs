//! Findings of a report: what stands out in it, what it costs, and what to try.

mod damage;
mod garbage;
mod idle;
mod ranks;
pub(super) mod requests;

pub(crate) use damage::crash_place;

use crate::table::{Activity, CostOf, Finding, IdleCause, RunReport, TraceRange, Unrecognized};

/// Minimum cost of a finding, as a share of the time in which users waited for answers. Cheaper findings are dropped.
const LEAST: f64 = 0.01;

/// Returns the findings, costliest first. Crashes and losses come before everything else.
pub(crate) fn findings(report: &RunReport) -> Vec<Finding> {
    let mut found = idle::idle(report);
    found.extend(ranks::communication(report));
    found.extend(ranks::late_rank(report));
    found.extend(ranks::uneven_devices(report));
    found.extend(ranks::uneven_engines(report));
    found.extend(requests::requests(report));
    found.extend(requests::stalled_decodes(report));
    found.extend(requests::process_stalled(report));
    found.extend(garbage::garbage(report));
    // Both findings describe the same time; this one sees it from the devices' side.
    if found.iter().any(|finding| finding.rule == "slow_frontend") {
        found.retain(|finding| finding.rule != IdleCause::Frontend.name());
    }
    for finding in &mut found {
        finding.waited = waited(report, finding);
        // A request may arrive before the window that is shown.
        if let Some(place) = &mut finding.place {
            let before_ns = (-place.from_ns).max(0);
            *place = TraceRange {
                from_ns: place.from_ns + before_ns,
                dur_ns: (place.dur_ns - before_ns).max(0),
            };
        }
    }
    found.retain(|finding| finding.waited >= LEAST);
    found.sort_by(|one, other| other.waited.total_cmp(&one.waited));
    found.splice(0..0, damage::losses(report));
    found.splice(0..0, damage::crash(report));
    found
}

/// Creates a finding without a place. [`findings`] fills in the share of users' waiting time.
fn draft(
    rule: &'static str,
    evidence: String,
    (cost, of): (f64, CostOf),
    advice: &'static str,
) -> Finding {
    Finding {
        rule,
        evidence,
        cost,
        of,
        advice,
        waited: 0.0,
        place: None,
    }
}

/// Returns the cost of a finding as a share of the time in which users waited for answers. A request waits while its
/// devices do, so time of devices without any request does not count.
fn waited(report: &RunReport, finding: &Finding) -> f64 {
    let share = match finding.of {
        CostOf::DeviceTime => {
            let in_flight = 1.0 - report.idle_share(IdleCause::NoRequest);
            finding.cost / in_flight.max(f64::MIN_POSITIVE)
        }
        CostOf::RequestTime | CostOf::WallTime | CostOf::Requests | CostOf::Figures => finding.cost,
    };
    share.min(1.0)
}

/// Returns the time range of the longest idle gap of any device that has `cause` as its main cause, or `None` if none
/// of the gaps in the report has.
fn longest_gap(report: &RunReport, cause: IdleCause) -> Option<TraceRange> {
    let mut gaps = report.long_gaps.iter();
    let gap = gaps.find(|gap| gap.cause == cause)?;
    Some(TraceRange {
        from_ns: gap.start_ns,
        dur_ns: gap.end_ns - gap.start_ns,
    })
}

/// Returns the kinds of events that the report recognizes by name but that this run lacks. A run without any span lacks
/// nothing.
pub(crate) fn unrecognized(report: &RunReport) -> Vec<Unrecognized> {
    let kinds = [
        (
            has_steps(report),
            "step",
            "slow workers and the causes of idle devices cannot be found",
        ),
        (
            report.requests.n > 0,
            "request",
            "the report has no figures of requests",
        ),
    ];
    let missing = kinds
        .into_iter()
        .filter(|(is_there, ..)| !is_there && !report.names.is_empty());
    missing
        .map(|(_, what, consequence)| Unrecognized {
            what,
            consequence,
            see: "docs/time.md#names-that-the-report-knows",
        })
        .collect()
}

/// Returns true if any span is recognized as a step by its name.
fn has_steps(report: &RunReport) -> bool {
    let is_step = |name: &crate::NameTime| Activity::from_name(&name.name) == Some(Activity::Step);
    report.names.iter().any(is_step)
}
