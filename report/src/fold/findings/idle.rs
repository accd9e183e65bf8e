//! Findings about the causes of idle devices.

use super::garbage::most_gc;
use super::ranks::clock_words;
use super::{draft, has_steps, longest_gap, waited};
use crate::amount::duration;
use crate::table::{CostOf, Finding, IdleCause, RunReport};

/// Minimum share of the time in which users waited for answers.
pub(super) const IDLE: f64 = 0.05;

/// Returns the evidence and the advice for an idle cause, or `None` if the cause is unknown or is not a bottleneck.
fn evidence_and_advice(cause: IdleCause) -> Option<(&'static str, &'static str)> {
    Some(match cause {
        IdleCause::LaunchGap => (
            "in a step, the devices waited for the next launch: the host cannot keep up with the devices",
            "graph mode (ACL graphs); fewer and larger kernels; dedicated cores for each worker",
        ),
        IdleCause::LaunchDelay => (
            "kernels were launched but did not start, with nothing else on the device",
            "look at what the streams wait for: events, copies, the device's own scheduler",
        ),
        IdleCause::Preparing => (
            "the devices waited for the first launch of a step",
            "asynchronous scheduling, which prepares a step while the previous one runs",
        ),
        IdleCause::Sampling => (
            "the devices waited while workers sampled or copied tokens back",
            "sampling on the device; asynchronous output",
        ),
        IdleCause::Scheduling => (
            "the devices waited while the engine scheduled",
            "asynchronous scheduling; fewer requests in a batch; fewer engines on a core",
        ),
        IdleCause::Output => (
            "the devices waited while the engine processed the output of the last step",
            "asynchronous scheduling; less to do for each token (logprobs, stop texts)",
        ),
        IdleCause::Ipc => (
            "the workers had finished a step, but the engine had not noticed yet",
            "check whether the processes waited for a free core; use shared memory instead of sockets",
        ),
        IdleCause::Worker => (
            "a worker had received a step, or the sampling after it, but had not started it",
            "look at what kept the worker: no free core, a process that was stopped or swapped out, other threads that hold the interpreter's lock",
        ),
        IdleCause::OtherRank => (
            "devices waited for another worker, which was still in its step",
            "look at the worker that the others wait for: its cores, its share of the work, its device",
        ),
        IdleCause::Gc => (
            "the devices waited while Python collected garbage",
            "gc.freeze() after start-up, or a higher gc.set_threshold()",
        ),
        IdleCause::KvTransfer => (
            "the devices waited for the transfer of keys and values",
            "loading them layer by layer; a faster connection between the hosts",
        ),
        IdleCause::Frontend => (
            "the devices waited while requests had not reached the engine",
            "more API servers; look at tokenising and templates",
        ),
        IdleCause::NotSchedulable => (
            "requests were queued in the engine, but none could run",
            "a larger KV cache, a larger token budget; look at preemptions and grammars",
        ),
        IdleCause::Engine => (
            "the engine had requests, but no span shows what it did",
            "level verbose, or spans of your own around what the engine does between steps",
        ),
        IdleCause::NoRequest | IdleCause::NotRecorded | IdleCause::Unknown => return None,
    })
}

/// Returns the rule name of a finding about this cause.
fn rule(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::LaunchGap => "host_bound",
        IdleCause::OtherRank => "slow_rank",
        other => other.name(),
    }
}

/// Reports each idle cause that cost enough time.
pub(super) fn idle(report: &RunReport) -> Vec<Finding> {
    let (has_steps, recorded) = (has_steps(report), &report.recorded);
    let finding = |cause: IdleCause| {
        let (phrase, advice) = evidence_and_advice(cause)?;
        // Traces of other profilers show launches, but may not show steps.
        let phrase = match has_steps {
            true => phrase,
            false => phrase.trim_start_matches("in a step, "),
        };
        let mut evidence = match report.device.is_empty() {
            true => phrase.replace("devices", "workers"),
            false => phrase.to_owned(),
        };
        match (cause, report.longest_wait()) {
            (IdleCause::OtherRank, Some((device, wait))) => evidence.push_str(&format!(
                ": {} waited {} for {}{}",
                report.process_name(device.process),
                duration(wait.ns as f64),
                report.process_name(wait.process),
                clock_words(recorded.greatest_uncertainty_ns([device.worker, wait.process]))
            )),
            (IdleCause::Gc, _) => evidence.extend(most_gc(report)),
            _ => {
                let most = report
                    .most_idle(cause)
                    .map(|device| report.process_name(device.process));
                evidence.extend(most.map(|name| format!("; {name} most of all")));
            }
        }
        Some(Finding {
            place: longest_gap(report, cause),
            ..draft(
                rule(cause),
                evidence,
                (report.idle_share(cause), CostOf::DeviceTime),
                advice,
            )
        })
    };
    let found = IdleCause::ALL.into_iter().filter_map(finding);
    found
        .filter(|finding| waited(report, finding) >= IDLE)
        .collect()
}
