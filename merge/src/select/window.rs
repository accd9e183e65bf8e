//! A window of a run: which events are in it, once it is known where the run begins and ends.

use crate::Window;
use crate::clock::axis::ns;
use crate::event::edges::Edges;
use serde::Serialize;
use std::time::Duration;

/// What a window shows and what it leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowReport {
    /// Its length in ns, if it is the last part of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ns: Option<u64>,
    /// Where it begins and ends, in ns from the first event of the run that was read; absent where it has no edge.
    pub from_ns: Option<i64>,
    /// Its end.
    pub to_ns: Option<i64>,
    /// That first event, in ns of the reference host's monotonic clock, as `base_ns` is.
    pub start_ns: i64,
    /// Time in ns after it up to which segments were read, if `--reach` may have left out spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach_ns: Option<u64>,
    /// Length in ns of the part that lies beyond the segments that were read, because clocks were set; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_ns: Option<i64>,
    /// Segments that were not read; their events are not counted.
    pub segments_left_out: u64,
    /// Bytes of all segments that were not read.
    pub bytes_left_out: u64,
    /// Events that ended before it or began after it.
    pub events_left_out: u64,
    /// Spans that cross an edge. They are cut there, and have `"sa_cut":true` and their whole times in their args.
    pub spans_cut: u64,
}

/// The edges in each recording's time, if it is only shifted.
pub(crate) fn of_recordings(edges: Edges, shifts_ns: &[i64]) -> Vec<Edges> {
    let unshifted = |shift_ns: &i64| edges.unshifted(*shift_ns);
    shifts_ns.iter().map(unshifted).collect()
}

impl WindowReport {
    /// The window of a run in which nothing has a time.
    pub(crate) fn of_nothing(window: &Window) -> WindowReport {
        WindowReport {
            last_ns: match window {
                Window::Last(last) => Some(ns(*last).unsigned_abs()),
                _ => None,
            },
            ..WindowReport::default()
        }
    }

    /// The window with these edges of a run that begins at `first_ns`.
    pub(crate) fn of(window: &Window, first_ns: i64, edges: Edges) -> WindowReport {
        let after = |ns: i64, open| (ns != open).then(|| ns.saturating_sub(first_ns));
        WindowReport {
            from_ns: after(edges.from_ns, i64::MIN),
            to_ns: after(edges.to_ns, i64::MAX),
            start_ns: first_ns,
            ..WindowReport::of_nothing(window)
        }
    }

    /// Returns the part of a time span that the window shows. Both are in ns from the base of the trace.
    pub fn within(&self, base_ns: i64, (first_ns, last_ns): (i64, i64)) -> (i64, i64) {
        let edge = |ns: i64| self.start_ns.saturating_add(ns).saturating_sub(base_ns);
        let from_ns = self.from_ns.map_or(first_ns, |ns| edge(ns).max(first_ns));
        let to_ns = self.to_ns.map_or(last_ns, |ns| edge(ns).min(last_ns));
        (from_ns, to_ns.max(from_ns))
    }

    /// What the window is, in words.
    pub(crate) fn words(&self) -> String {
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
            (_, None, None) => "outside of the window, for nothing has a time".to_owned(),
        }
    }
}

/// Adds members to the args of a line, which begins at `start` of `out`.
pub(crate) fn add_args(out: &mut Vec<u8>, start: usize, members: &[u8]) {
    let line = &out[start..];
    let Some(fields) = crate::event::json::scan_object(line) else {
        return;
    };
    let (at, text) = match fields.args.of(line) {
        b"" => match memchr::memrchr(b'}', line) {
            Some(end) => (end, [br#","args":{"#, members, b"}"].concat()),
            None => return,
        },
        [b'{', inside @ .., b'}'] if inside.trim_ascii().is_empty() => {
            (fields.args.end - 1, members.to_vec())
        }
        [b'{', ..] => (fields.args.end - 1, [b",", members].concat()),
        _ => return, // args that are no object have no room for it
    };
    out.splice(start + at..start + at, text);
}
