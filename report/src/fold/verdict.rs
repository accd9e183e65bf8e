//! Derives the verdict from a report: one or two sentences on what limited the server.

mod causes;
mod queue;

pub(super) use queue::KV_FULL;

use super::findings::crash_place;
use crate::amount::duration;
use crate::table::{CrashedSpan, Finding, RunReport, SeriesKind, Verdict, VerdictRule};
use trace_merge::Exit;

/// Minimum share of users' waiting time that a cause must take to become the verdict.
const LEAST: f64 = 0.10;
/// Minimum share for a cause to become the verdict even if the load is low.
const CLEAR: f64 = 0.25;
/// Maximum mean number of requests in flight for a low load, if almost no requests are queued.
const LOW_LOAD: f64 = 1.05;
/// Mean number of queued requests below which almost none are queued.
const NONE_QUEUED: f64 = 0.05;

/// A cause that may become the verdict, and its share of users' waiting time.
struct Candidate {
    waited: f64,
    verdict: Verdict,
}

/// Returns what limited the server. The report must already contain its findings.
pub(crate) fn verdict(report: &RunReport) -> Verdict {
    if let Some(verdict) = crash(report) {
        return verdict;
    }
    // The causes in the first group are certain if they apply. The causes in the second group cost every server some
    // time.
    let most = costliest([
        queue::queue(report),
        causes::stalled(report),
        causes::frontend(report),
        causes::garbage(report),
    ]);
    let most = most.or_else(|| {
        costliest([
            causes::rank(report),
            causes::transfer(report),
            causes::host(report),
        ])
    });
    let is_clear = |candidate: &Candidate| {
        candidate.waited >= CLEAR && candidate.verdict.rule != VerdictRule::HostBound
    };
    if let Some(verdict) = little_load(report)
        && !most.as_ref().is_some_and(is_clear)
    {
        return verdict;
    }
    match most {
        Some(candidate) => candidate.verdict,
        None if report.requests.ok == 0 => unknown(report),
        None => nothing(report),
    }
}

/// Returns the candidate with the largest share of the time in which users waited, or `None` if there is no candidate.
fn costliest<const N: usize>(candidates: [Option<Candidate>; N]) -> Option<Candidate> {
    let found = candidates.into_iter().flatten();
    found.max_by(|one, other| one.waited.total_cmp(&other.waited))
}

/// Returns the report's first finding with the given rule name, or `None` if there is none.
fn finding<'a>(report: &'a RunReport, rule: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.rule == rule)
}

/// Formats a share as a percentage.
fn percent(share: f64) -> String {
    match 100.0 * share {
        below if below < 1.0 => "less than 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Returns a phrase such as "20 % of the time in which users waited for answers".
fn of_waiting(report: &RunReport, waited: f64) -> String {
    let whole = match report.requests.n {
        0 => "the devices' time",
        _ => "the time in which users waited for answers",
    };
    format!("{} of {whole}", percent(waited))
}

/// Returns the mean of a level over all requests, or the sum of its means over all engines.
fn mean_level(report: &RunReport, kind: SeriesKind) -> Option<f64> {
    let levels = report.load.iter().filter(|level| level.of == kind);
    let means: Vec<f64> = levels.map(|level| level.mean).collect();
    (!means.is_empty()).then(|| means.iter().sum())
}

/// Returns the verdict that a process crashed, or `None` if the run did not crash.
fn crash(report: &RunReport) -> Option<Verdict> {
    let crash = report.crash.as_ref()?;
    let name = |process: usize| report.process_name(process);
    let mut text = format!("{} died", name(crash.process));
    text += &match &crash.exit {
        Some(Exit::Signal(signal)) => format!(" ({signal})"),
        Some(exit) => format!(" ({})", exit.text()),
        None => String::new(),
    };
    if let Some(last_ns) = crash.last_ns {
        text += &format!(" at {:.1} s", last_ns as f64 / 1e9);
    }
    match (&crash.step, crash.spans.last()) {
        (Some(step), _) => text += &format!(" in step {step}"),
        (None, Some(CrashedSpan { name, .. })) => text += &format!(" in {name}"),
        (None, None) => {}
    }
    match crash.requests {
        0 => {}
        1 => text += " and took 1 request with it",
        n => text += &format!(" and took {n} requests with it"),
    }
    if let Some(next) = crash.followed_by.first() {
        text += &format!("; {} was killed", name(next.process));
        let after = next.after_ns.map(|ns| duration(ns as f64));
        text += &after.map_or(String::new(), |after| format!(" {after} later"));
    }
    let summary = &report.requests;
    Some(Verdict {
        rule: VerdictRule::Crash,
        text: text + ".",
        advice: "Look at the kernel's log, the core dump and the end of the server's log."
            .to_owned(),
        evidence: format!(
            "{} of {} requests were not answered",
            summary.n - summary.ok,
            summary.n
        ),
        place: crash_place(report),
    })
}

/// Returns a verdict if too few requests were in flight to find out what limits the server.
fn little_load(report: &RunReport) -> Option<Verdict> {
    let mut levels = report.load.iter();
    let in_flight = levels.find(|level| level.of == SeriesKind::InFlight)?;
    let waiting = mean_level(report, SeriesKind::Waiting).unwrap_or(0.0);
    let is_low = in_flight.mean <= LOW_LOAD || in_flight.p50 < 1.0;
    (is_low && waiting < NONE_QUEUED).then(|| Verdict {
        rule: VerdictRule::LittleLoad,
        text: format!(
            "The load is too low to say what limits the server: {:.1} requests were in flight on average, and none were queued.",
            in_flight.mean
        ),
        advice: "Send more requests at once.".to_owned(),
        evidence: format!(
            "{:.0} in flight at most, {:.1} or fewer for half of the time; mean E2E {}",
            in_flight.max,
            in_flight.p50,
            duration(report.requests.e2e.mean_ns)
        ),
        place: None,
    })
}

/// Returns the verdict on a run without answered requests, in which nothing can be said about what limited the server.
fn unknown(report: &RunReport) -> Verdict {
    let summary = &report.requests;
    let (text, advice) = match summary.n {
        0 => (
            "Nothing can be said about what limited the server: the trace has no requests."
                .to_owned(),
            "Record while the server answers requests; docs/time.md lists the names of their events.",
        ),
        1 => (
            "Nothing can be said about what limited the server: its only request was not answered."
                .to_owned(),
            "Record for longer, or look at the server's log.",
        ),
        n => (
            format!(
                "Nothing can be said about what limited the server: none of {n} requests was answered."
            ),
            "Record for longer, or look at the server's log.",
        ),
    };
    let devices = report.timed().count();
    Verdict {
        rule: VerdictRule::Unknown,
        text,
        advice: advice.to_owned(),
        evidence: format!(
            "{} events of {} processes, {devices} devices or workers; {} requests aborted, {} failed, {} unfinished",
            report.recorded.events,
            report.recorded.processes.len(),
            summary.aborted,
            summary.failed,
            summary.unfinished
        ),
        place: None,
    }
}

/// Returns the verdict on a server for which no rule applies.
fn nothing(report: &RunReport) -> Verdict {
    let summary = &report.requests;
    let parts = &report.request_parts;
    let most = parts
        .parts
        .iter()
        .max_by(|one, other| one.mean_ns.total_cmp(&other.mean_ns));
    // Without a frontend, only the engine's TTFT is known.
    let (ttft, qualifier) = match summary.ttft.n {
        0 => (&summary.engine_ttft, " of the engine"),
        _ => (&summary.ttft, ""),
    };
    let after_ttft = |name: &str| {
        let mut names = name.split(" + ");
        names.any(|name| ["decode", "return", "answer"].contains(&name))
    };
    let before = parts.parts.iter().filter(|part| !after_ttft(&part.name));
    let most_ttft = before.max_by(|one, other| one.mean_ns.total_cmp(&other.mean_ns));
    let mut text = "Nothing stands out".to_owned();
    let ttft_ns = duration(ttft.mean_ns);
    match (ttft.n, most_ttft) {
        (0, _) => text += &format!(": mean E2E is {}", duration(summary.e2e.mean_ns)),
        (_, None) => text += &format!(": mean TTFT{qualifier} is {ttft_ns}"),
        (_, Some(part)) => {
            let (name, share) = (&part.name, part.mean_ns / ttft.mean_ns.max(1.0));
            let share = percent(share.min(1.0));
            text += &format!(": mean TTFT{qualifier} is {ttft_ns}, and {name} takes {share} of it");
        }
    }
    let most = most.map(|part| {
        let share = percent(part.mean_ns / parts.e2e_mean_ns.max(1.0));
        format!(", {share} of it {}", part.name)
    });
    Verdict {
        rule: VerdictRule::Nothing,
        text: text + ".",
        advice: String::new(),
        evidence: format!(
            "{} of {} requests answered; mean E2E {}{}",
            summary.ok,
            summary.n,
            duration(summary.e2e.mean_ns),
            most.unwrap_or_default()
        ),
        place: None,
    }
}

/// Returns a candidate with the evidence and the place of a finding, if the finding cost at least `least`.
fn from_finding(
    rule: VerdictRule,
    (finding, least): (&Finding, f64),
    text: String,
    advice: &str,
) -> Option<Candidate> {
    (finding.waited >= least).then(|| Candidate {
        waited: finding.waited,
        verdict: Verdict {
            rule,
            text,
            advice: advice.to_owned(),
            evidence: finding.evidence.clone(),
            place: finding.place,
        },
    })
}
