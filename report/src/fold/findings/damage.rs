//! Crashes and losses, which come before all other findings.

use super::draft;
use crate::table::{CostOf, Finding, RunReport, TraceRange};

/// Maximum number of requests and processes that are named.
const NAMED: usize = 3;
/// Length of time before a crash that shows what led to it.
const BEFORE_NS: i64 = 500_000_000;

/// Reports which process died first, in which step or span, and which processes were killed after it.
pub(super) fn crash(report: &RunReport) -> Option<Finding> {
    let crash = report.crash.as_ref()?;
    let name = |process: usize| {
        let recorded = report.recorded.processes.get(process);
        let pid = recorded.map_or(0, |process| process.pid);
        format!("{} (pid {pid})", report.process_name(process))
    };
    let mut evidence = format!("{} died first", name(crash.process));
    evidence += &match &crash.exit {
        Some(exit) => format!(", {}", exit.text()),
        None => ", by an unknown signal".to_owned(),
    };
    if let Some(at_ns) = crash.last_ns {
        evidence += &format!(", at {:.3} s", at_ns as f64 / 1e9);
    }
    if let Some(step) = &crash.step {
        evidence += &format!(", in step {step}");
    }
    if let Some(span) = crash.spans.last() {
        evidence += &format!(", in {}", span.name);
    }
    if crash.requests > 0 {
        let ids = crash.request_ids.iter().take(NAMED).map(String::as_str);
        let ids: Vec<&str> = ids.collect();
        let is_more = crash.requests > ids.len() as u64;
        let more = if is_more { ", …" } else { "" };
        let plural = if crash.requests == 1 { "" } else { "s" };
        let (requests, ids) = (crash.requests, ids.join(", "));
        evidence += &format!(", with {requests} request{plural} ({ids}{more})");
    }
    for (nth, next) in crash.followed_by.iter().take(NAMED).enumerate() {
        evidence += if nth == 0 { "; then " } else { ", " };
        evidence += &name(next.process);
        if let Some(ns) = next.after_ns {
            evidence += &format!(" {:.3} s later", ns as f64 / 1e9);
        }
    }
    for before in crash.maybe_before.iter().take(NAMED) {
        let seconds = before.before_ns as f64 / 1e9;
        let name = name(before.process);
        evidence += &format!(
            "; {name} may have died before: {seconds:.3} s earlier it stopped recording, with no span open"
        );
    }
    let summary = &report.requests;
    let unanswered = summary.n - summary.ok;
    Some(Finding {
        place: crash_place(report),
        ..draft(
            "crash",
            evidence,
            (
                unanswered as f64 / summary.n.max(1) as f64,
                CostOf::Requests,
            ),
            "look at the kernel's log and the core dump; see docs/crash.md",
        )
    })
}

/// Returns the time around the last event of the process that died first.
pub(crate) fn crash_place(report: &RunReport) -> Option<TraceRange> {
    let last_ns = report.crash.as_ref()?.last_ns?;
    Some(TraceRange {
        from_ns: (last_ns - BEFORE_NS).max(0),
        dur_ns: 2 * BEFORE_NS,
    })
}

/// Reports the events that recorders lost.
pub(super) fn losses(report: &RunReport) -> Option<Finding> {
    let lost = report.recorded.lost_events;
    let all = lost.saturating_add(report.recorded.events);
    (lost > 0).then(|| {
        draft(
            "losses",
            match lost {
                1 => "1 event was lost and is missing from all figures".to_owned(),
                n => format!("{n} events were lost and are missing from all figures"),
            },
            (lost as f64 / all.max(1) as f64, CostOf::Figures),
            "docs/troubleshooting.md#losses",
        )
    })
}
