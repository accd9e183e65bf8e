//! Finds out from fragments and rings how processes ended, without a merge.

use trace_merge::Death;
use trace_merge::survey::Contents;

/// Returns what is known of the end of a process; `None` if it lives, has ended as it should, or was running when a snapshot was taken.
pub(crate) fn death(contents: &Contents, is_alive: bool) -> Option<Death> {
    (!is_alive && !contents.ended && !contents.was_running).then(|| Death {
        open_spans: contents.open_spans,
        exit: contents.exit.clone(),
        last_ns: last_realtime_ns(contents).and_then(|ns| i64::try_from(ns).ok()),
    })
}

/// Returns the wall time of the last event of a process. Computes it from the monotonic clock, which was tied to wall time when recording began.
pub(crate) fn last_realtime_ns(contents: &Contents) -> Option<u64> {
    let (began, last_ns) = (contents.began?, contents.last_ns?);
    let since = last_ns.saturating_sub(began.monotonic_ns);
    Some(began.realtime_ns.saturating_add(since))
}
