//! Finds the process that died first and the spans that it died in, from killed processes and unfinished spans.

use crate::gather::slice_record::OpenSpan;
use crate::table::{Crash, CrashedSpan, FollowedBy, MaybeBefore, RecordedProcess};
use std::collections::BTreeSet;
use trace_merge::{Death, DeathKind, first_killed};

/// Maximum numbers of listed spans and request ids.
const SPANS: usize = 32;
const IDS: usize = 100;
/// Maximum time between the last event of a process that may have died first and the crash. The other processes notice
/// a death within seconds.
const NOTICED_NS: i64 = 10_000_000_000;

/// Returns the crash of a run, or `None` if no process was killed, or only by signals that end programs normally. With
/// `is_cut`, the window ends before the run does, and a process counts only if it died in a span inside the window.
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
    let after = |later: &Death| {
        let ns = later.last_ns?.checked_sub(death.last_ns?)?;
        (ns >= 0).then_some(ns)
    };
    let maybe_before = |(process, other): &(usize, Death)| {
        let is_silent = other.kind() == DeathKind::Idle && other.exit.is_none();
        let before_ns = death.last_ns?.checked_sub(other.last_ns?)?;
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
            .map(|(process, follower)| FollowedBy {
                process,
                after_ns: after(&follower),
                exit: follower.exit,
            })
            .collect(),
        exit: death.exit,
    })
}
