//! A naive filter of the whole trace, to compare with windows.

use crate::invocation::{Merged, RunDir};
use crate::random::Rng;
use crate::trace::{content, ns, whole};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;

/// Events with their times on the host's axis, sorted, and true for events that are marked as cut.
pub(crate) type Events = Vec<(String, bool)>;

pub(crate) fn base_ns(merged: &Merged) -> i64 {
    merged.report.0["base_ns"].as_i64().unwrap()
}

pub(crate) fn end_ns(event: &Value) -> i64 {
    let dur_ns = if event["ph"] == "X" {
        ns(&event["dur"])
    } else {
        0
    };
    ns(&event["ts"]) + dur_ns
}

/// Returns an event's content, with its time on an axis that does not depend on the window, and
/// true if the event is marked as cut.
pub(crate) fn comparable(event: &Value, base_ns: i64) -> (String, bool) {
    let (event, cut) = whole(event);
    let ts_ns = ns(&event["ts"]) + base_ns;
    (content(&event, ts_ns), cut)
}

/// Writes spans long enough to cross any edge. Spans of `random::write_own` last less than a
/// thousandth of the run.
pub(crate) fn write_long(rng: &mut Rng, dir: &RunDir) {
    let process = Process::new(300);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let lines = [(); 10].map(|()| {
        let ts_ns = 5_000_000_000 + rng.next() % 900_000_000;
        on.span(ts_ns, rng.next() % 500_000_000, "long", "")
    });
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
}

/// Returns the events of a whole trace that are in a window, and marks the ones that cross an edge.
/// The window is in ns from the start of the trace.
pub(crate) fn naive<'a>(
    events: impl Iterator<Item = &'a Value>,
    base_ns: i64,
    (from_ns, to_ns): (i64, i64),
    is_open: impl Fn(&Value) -> bool,
) -> Events {
    let is_kept =
        |event: &&Value| ns(&event["ts"]) <= to_ns && (end_ns(event) >= from_ns || is_open(event));
    let mark = |event: &Value| {
        let (text, _) = comparable(event, base_ns);
        let crosses = ns(&event["ts"]) < from_ns || end_ns(event) > to_ns;
        (text, event["ph"] == "X" && crosses)
    };
    sorted(events.filter(is_kept).map(mark))
}

pub(crate) fn sorted(events: impl Iterator<Item = (String, bool)>) -> Events {
    let mut events: Events = events.collect();
    events.sort_unstable();
    events
}

/// Returns true for an unfinished span.
pub(crate) fn is_unfinished(event: &Value) -> bool {
    event["args"]["unfinished"] == true
}

/// Returns the end of the newest event, in ns from the start of the trace.
pub(crate) fn newest_ns(merged: &Merged) -> i64 {
    merged.trace.shown().map(end_ns).max().unwrap()
}
