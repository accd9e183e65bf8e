//! A report → what stands out in it.

mod damage;
mod garbage;
mod idle;
mod ranks;
pub(super) mod requests;

pub(crate) use damage::crash_place;

use crate::table::{Activity, CostOf, Finding, IdleCause, Place, RunReport, Unrecognized};

/// Minimum cost of a finding, as a share of the time that users waited. Smaller ones are dropped.
const LEAST: f64 = 0.01;

/// Returns the findings, the costliest first. Crashes and losses come before everything else.
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
    // These findings show the same time from the devices' side.
    if found.iter().any(|finding| finding.rule == "slow_frontend") {
        found.retain(|finding| finding.rule != IdleCause::Frontend.name());
    }
    for finding in &mut found {
        finding.waited = waited(report, finding);
        // A request may arrive before the window that is shown.
        if let Some(place) = &mut finding.place {
            let before_ns = (-place.from_ns).max(0);
            *place = Place {
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

/// Returns a finding whose place is unknown. [`findings`] fills in what it cost users.
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

/// Returns the cost of a finding as a share of the time that users waited. A request waits while its devices do, so the time of devices without any request does
/// not count.
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

/// Returns the longest time in which a device was idle mainly for this cause.
fn longest_gap(report: &RunReport, cause: IdleCause) -> Option<Place> {
    let mut gaps = report.long_gaps.iter();
    let gap = gaps.find(|gap| gap.cause == cause)?;
    Some(Place {
        from_ns: gap.start_ns,
        dur_ns: gap.end_ns - gap.start_ns,
    })
}

/// Returns the kinds of events that the report looks for by name, and that the run has none of. A run without any span has none.
pub(crate) fn unrecognized(report: &RunReport) -> Vec<Unrecognized> {
    let kinds = [
        (
            has_steps(report),
            "step",
            "a slow worker and the causes of idle devices go unseen",
        ),
        (
            report.requests.n > 0,
            "request",
            "no figure of a request is there",
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

/// Returns true if a step is known by its name.
fn has_steps(report: &RunReport) -> bool {
    let is_step = |name: &crate::NameTime| Activity::of(&name.name) == Some(Activity::Step);
    report.names.iter().any(is_step)
}
