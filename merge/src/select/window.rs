//! The report on a window, once the begin and end of the run are known.

use crate::Window;
use crate::clock::axis::ns;
use crate::event::edges::Edges;
use serde::Serialize;
use std::time::Duration;

/// The events that a window shows and leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowReport {
    /// Length in ns, if it is the last part of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ns: Option<u64>,
    /// Begin of the window, in ns from the first event of the run that was read; absent if it is
    /// open.
    pub from_ns: Option<i64>,
    /// End of the window, in the same unit; absent if it is open.
    pub to_ns: Option<i64>,
    /// Time of that first event, in ns of the reference host's monotonic clock, like `base_ns`.
    pub start_ns: i64,
    /// Time in ns after the window up to which segments were read, if `--reach` may have left out
    /// spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach_ns: Option<u64>,
    /// Length in ns of the part that is beyond the segments that were read, because clocks were
    /// set; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_ns: Option<i64>,
    /// Number of segments that were not read; their events are not counted.
    pub segments_left_out: u64,
    /// Length in bytes of all segments that were not read.
    pub bytes_left_out: u64,
    /// Number of events that ended before the window or began after it.
    pub events_left_out: u64,
    /// Number of spans that cross an edge. They are cut there, and their args contain
    /// `"sa_cut":true` and their complete times.
    pub spans_cut: u64,
}

/// Returns the edges in each recording's time, for recordings that are only shifted.
pub(crate) fn edges_per_recording(edges: Edges, shifts_ns: &[i64]) -> Vec<Edges> {
    let unshifted = |shift_ns: &i64| edges.unshifted(*shift_ns);
    shifts_ns.iter().map(unshifted).collect()
}

impl WindowReport {
    /// Creates the report for a run in which no event has a time.
    pub(crate) fn empty(window: &Window) -> WindowReport {
        WindowReport {
            last_ns: match window {
                Window::Last(last) => Some(ns(*last).unsigned_abs()),
                _ => None,
            },
            ..WindowReport::default()
        }
    }

    /// Creates the report for a window with these edges, of a run that begins at `first_ns`.
    pub(crate) fn new(window: &Window, first_ns: i64, edges: Edges) -> WindowReport {
        let after = |ns: i64, open| (ns != open).then(|| ns.saturating_sub(first_ns));
        WindowReport {
            from_ns: after(edges.from_ns, i64::MIN),
            to_ns: after(edges.to_ns, i64::MAX),
            start_ns: first_ns,
            ..WindowReport::empty(window)
        }
    }

    /// Returns the part of a time span that the window shows. Both are in ns from the base of the
    /// trace.
    pub fn within(&self, base_ns: i64, (first_ns, last_ns): (i64, i64)) -> (i64, i64) {
        let edge = |ns: i64| self.start_ns.saturating_add(ns).saturating_sub(base_ns);
        let from_ns = self.from_ns.map_or(first_ns, |ns| edge(ns).max(first_ns));
        let to_ns = self.to_ns.map_or(last_ns, |ns| edge(ns).min(last_ns));
        (from_ns, to_ns.max(from_ns))
    }

    /// Describes the events that the window leaves out.
    pub(crate) fn left_out_text(&self) -> String {
        let seconds = |ns: i64| {
            let sign = if ns < 0 { "-" } else { "" };
            let length = Duration::from_nanos(ns.unsigned_abs());
            format!("{sign}{}s", length.as_secs_f64())
        };
        match (self.last_ns, self.from_ns, self.to_ns) {
            (Some(last_ns), ..) => format!("before the last {:?}", Duration::from_nanos(last_ns)),
            (_, Some(from), Some(to)) => {
                let (from, to) = (seconds(from), seconds(to));
                format!("outside of {from} to {to} from the start")
            }
            (_, Some(from), None) => format!("before {} from the start", seconds(from)),
            (_, None, Some(to)) => format!("after {} from the start", seconds(to)),
            (_, None, None) => "outside of the window, because no event has a time".to_owned(),
        }
    }
}

/// Adds members, such as `"key":1`, to the `args` object of the JSON event that begins at byte
/// `start` of `out`. Creates `args` if the event has none, and changes nothing if it is not an
/// object.
pub(crate) fn add_args(out: &mut Vec<u8>, start: usize, members: &[u8]) {
    let line = &out[start..];
    let Some(fields) = crate::event::json::scan_object(line) else {
        return;
    };
    let (at, text) = match fields.args.slice(line) {
        b"" => match memchr::memrchr(b'}', line) {
            Some(end) => (end, [br#","args":{"#, members, b"}"].concat()),
            None => return,
        },
        [b'{', inside @ .., b'}'] if inside.trim_ascii().is_empty() => {
            (fields.args.end - 1, members.to_vec())
        }
        [b'{', ..] => (fields.args.end - 1, [b",", members].concat()),
        _ => return, // args that are not an object cannot get members
    };
    out.splice(start + at..start + at, text);
}
