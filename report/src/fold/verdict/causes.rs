//! Verdicts other than the queue, from findings.

use super::{Candidate, LEAST, finding, from_finding, of_waiting, percent};
use crate::amount::duration;
use crate::fold::findings::requests::longest_in_frontend;
use crate::table::{CostOf, DeviceTime, Finding, IdleCause, RunReport, VerdictRule};

/// Rules of findings about the host, each with what the devices waited for.
const HOST: [(&str, &str); 8] = [
    ("host_bound", "the next launch in a step"),
    ("preparing", "the first launch of a step"),
    ("scheduling", "the scheduler"),
    ("output", "the engine to process outputs"),
    ("sampling", "sampling"),
    ("engine", "the engine"),
    ("ipc", "messages between engine and workers"),
    ("worker", "a worker that had not started its step"),
];

/// Minimum share for a stalled process. It is low, because no process stalls without a cause.
const LEAST_STALLED: f64 = 0.02;
/// Minimum share of E2E for the frontend. Requests with short outputs always spend some time there.
const LEAST_FRONTEND: f64 = 0.20;
/// Minimum share for the host, which always costs some time.
const LEAST_HOST: f64 = 0.25;

/// Returns the verdict for a stalled process.
pub(super) fn stalled(report: &RunReport) -> Option<Candidate> {
    let finding = finding(report, "process_stalled")?;
    let longest = report.stalls.iter().max_by_key(|stall| stall.dur_ns)?;
    let plural = if longest.requests == 1 { "" } else { "s" };
    let text = format!(
        "{} stood still for {} with {} request{plural} in flight: {}.",
        report.process_name(longest.process),
        duration(longest.dur_ns as f64),
        longest.requests,
        of_waiting(report, finding.waited)
    );
    let advice = "Look for what stopped it: a signal, a debugger, no free core, swapping.";
    let rule = VerdictRule::ProcessStalled;
    from_finding(rule, (finding, LEAST_STALLED), text, advice)
}

/// Returns the verdict for requests that spent their time outside the engine. A stalled frontend has its own verdict.
pub(super) fn frontend(report: &RunReport) -> Option<Candidate> {
    let finding = finding(report, "slow_frontend")?;
    let is_frontend = |process| {
        let mut arrived = report
            .request
            .iter()
            .filter(|request| request.arrival_ns.is_some());
        arrived.any(|request| request.process == Some(process))
    };
    if stalled(report).is_some() && report.stalls.iter().any(|stall| is_frontend(stall.process)) {
        return None;
    }
    let most = longest_in_frontend(report)?;
    let text = format!(
        "The frontend is slow: it took {} of E2E, most of it in {} ({} of the mean E2E of {}).",
        percent(finding.waited),
        most.name,
        duration(most.mean_ns),
        duration(report.request_parts.e2e_mean_ns)
    );
    let advice = match most.name.as_str() {
        "preprocess" => "Look at the tokenizer and the chat template, or start more API servers.",
        _ => "Start more API servers, or give them cores of their own.",
    };
    let finding = (finding, LEAST_FRONTEND);
    from_finding(VerdictRule::FrontendBound, finding, text, advice)
}

/// Returns the verdict for garbage collections.
pub(super) fn garbage(report: &RunReport) -> Option<Candidate> {
    let finding = finding(report, "gc")?;
    let waited = of_waiting(report, finding.waited);
    let text = format!("Python's garbage collector limits the server: it took {waited}.");
    let advice = "Call gc.freeze() after start-up, or raise the limits with gc.set_threshold().";
    from_finding(VerdictRule::Gc, (finding, LEAST), text, advice)
}

/// Returns the verdict for a worker that others waited for.
pub(super) fn rank(report: &RunReport) -> Option<Candidate> {
    let rules = ["slow_rank", "late_rank"];
    let found = rules.into_iter().filter_map(|rule| finding(report, rule));
    let finding = found.max_by(|one, other| one.waited.total_cmp(&other.waited))?;
    let waited = of_waiting(report, finding.waited);
    let text = match report
        .longest_wait()
        .filter(|_| finding.rule == "slow_rank")
    {
        Some((_, wait)) => {
            let name = report.process_name(wait.process);
            format!("{name} is slower than the other workers, which costs them {waited}.")
        }
        None => format!("One worker joins collectives late, which costs the others {waited}."),
    };
    let advice =
        "Look at its cores, its share of the work, and its device's clock and temperature.";
    from_finding(VerdictRule::WaitingForRank, (finding, LEAST), text, advice)
}

/// Returns the verdict for keys and values that are loaded from elsewhere.
pub(super) fn transfer(report: &RunReport) -> Option<Candidate> {
    let finding = finding(report, IdleCause::KvTransfer.name())?;
    let waited = of_waiting(report, finding.waited);
    let text =
        format!("The transfer of keys and values limits the server: workers spent {waited} on it.");
    let advice = "Load them layer by layer, or find a faster connection between the hosts.";
    from_finding(VerdictRule::TransferBound, (finding, LEAST), text, advice)
}

/// Returns the verdict for a host that does not launch work fast enough. Its share is the sum over all such findings,
/// and its text names the largest one.
pub(super) fn host(report: &RunReport) -> Option<Candidate> {
    let words = |finding: &Finding| {
        let rule = HOST.iter().find(|(rule, _)| *rule == finding.rule);
        rule.map(|(_, words)| *words)
    };
    let found = report.findings.iter();
    let costly = found.filter(|finding| finding.of == CostOf::DeviceTime);
    let found: Vec<(&Finding, &str)> = costly
        .filter_map(|finding| Some((finding, words(finding)?)))
        .collect();
    let (most, waited_for) = found.first()?;
    let waited: f64 = found.iter().map(|(finding, _)| finding.waited).sum();
    let waited = waited.min(1.0);
    let who = match report.device.is_empty() {
        true => "workers",
        false => "devices",
    };
    let all = of_waiting(report, waited);
    let text = match found.len() {
        1 => format!("The host limits the server: for {all}, {who} waited for {waited_for}."),
        _ => format!(
            "The host limits the server: for {all}, {who} waited for it, mostly for {waited_for} ({}).",
            percent(most.waited)
        ),
    };
    let advice = match most.advice.strip_prefix("look ") {
        Some(rest) => format!("Look {rest}."),
        None => format!("Try {}.", most.advice),
    };
    let mut candidate = from_finding(VerdictRule::HostBound, (*most, 0.0), text, &advice)?;
    candidate.waited = waited;
    let each = found
        .iter()
        .map(|(finding, words)| format!("{words} ({})", percent(finding.waited)));
    let each: Vec<String> = each.collect();
    candidate.verdict.evidence = format!("{who} waited for {}{}", each.join(", "), busy(report));
    (waited >= LEAST_HOST).then_some(candidate)
}

/// Returns a phrase on how busy the devices were, which is empty if no device was recorded.
fn busy(report: &RunReport) -> String {
    let sum = |ns: fn(&DeviceTime) -> i64| report.device.iter().map(ns).sum::<i64>() as f64;
    let wall_ns = sum(|device| device.wall_ns);
    match wall_ns > 0.0 {
        true => format!(
            "; they were busy for {} of their time",
            percent(sum(|device| device.busy_ns) / wall_ns)
        ),
        false => String::new(),
    }
}
