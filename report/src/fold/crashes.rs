//! Processes that were killed and spans without an end → which process died first, and in what.

use crate::gather::slice_record::OpenSpan;
use crate::table::{Crash, CrashedSpan, FollowedBy, MaybeBefore, RecordedProcess};
use std::collections::BTreeSet;
use trace_merge::{Death, DeathKind, first_killed};

/// Maximum numbers of spans and of request ids that are listed.
const SPANS: usize = 32;
const IDS: usize = 100;
/// Maximum time between the last event of a process that may have died first and the crash. Others notice within seconds.
const NOTICED_NS: i64 = 10_000_000_000;

/// Returns the crash of a run; `None` if none of its processes was killed, or only by signals that end programs normally. If a
/// window of the run ends before the run does, as `is_cut` says, a process counts only if it died in a span that the window shows.
pub(crate) fn crash(
    processes: &[RecordedProcess],
    open: Vec<OpenSpan>,
    is_cut: bool,
) -> Option<Crash> {
    let deaths = processes.iter().enumerate();
    let deaths = deaths.filter_map(|(number, process)| Some((number, process.death()?)));
    let deaths: Vec<(usize, Death)> = deaths.collect();
    let mut killed = first_killed(deaths.iter().cloned()).into_iter();
    let (process, death) = killed.next()?;
    if death.is_orderly() {
        return None;
    }
    let mut spans = open;
    spans.retain(|span| span.process == process);
    if is_cut && spans.is_empty() {
        return None;
    }
    spans.sort_by_key(|span| span.start_ns);
    let ids: BTreeSet<&String> = spans.iter().flat_map(|span| &span.request_ids).collect();
    // A process that SIGTERM ended is listed last, even if it ended first.
    let after = |of: &Death| {
        let ns = of.last_ns?.checked_sub(death.last_ns?)?;
        (ns >= 0).then_some(ns)
    };
    let maybe_before = |(process, of): &(usize, Death)| {
        let is_silent = of.kind() == DeathKind::Idle && of.exit.is_none();
        let before_ns = death.last_ns?.checked_sub(of.last_ns?)?;
        let is_shortly_before = (1..=NOTICED_NS).contains(&before_ns);
        (is_silent && is_shortly_before).then_some(MaybeBefore {
            process: *process,
            before_ns,
        })
    };
    Some(Crash {
        maybe_before: deaths.iter().filter_map(maybe_before).collect(),
        process,
        last_ns: death.last_ns,
        step: spans.iter().rev().find_map(|span| span.step.clone()),
        requests: ids.len() as u64,
        request_ids: ids.into_iter().take(IDS).cloned().collect(),
        spans: spans
            .iter()
            .skip(spans.len().saturating_sub(SPANS))
            .map(|span| CrashedSpan {
                name: span.name.clone(),
                start_ns: span.start_ns,
            })
            .collect(),
        followed_by: killed
            .map(|(process, of)| FollowedBy {
                process,
                after_ns: after(&of),
                exit: of.exit,
            })
            .collect(),
        exit: death.exit,
    })
}
