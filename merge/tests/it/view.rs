//! The numbers that a viewer shows for a trace, and the numbers it should show according to the
//! trace's own events.

use crate::perfetto::{ERRORS, FLOWS, SLICES, number, query};
use crate::trace::{Trace, ns};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Numbers of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Spans and instants, including async events and those of processes.
    pub(crate) slices: u64,
    /// Arrows. A flow has one arrow less than events.
    pub(crate) flows: u64,
    /// Samples, one for each series of a counter.
    pub(crate) counters: u64,
    /// Processes with a name.
    pub(crate) processes: u64,
    /// Number of slices, and length of the ended ones in ns, by the names of process and thread.
    pub(crate) threads: BTreeMap<(String, String), (u64, i64)>,
}

const PROCESSES: &str = "select count(*) from process where name is not null";
const COUNTERS: &str = "select count(*) from counter";
const ROWS: &str = "select ifnull(process.name, ''), ifnull(thread.name, ''), count(*), sum(max(slice.dur, 0)) from slice \
    join thread_track on slice.track_id = thread_track.id join thread using (utid) left join process using (upid) group by utid";

impl View {
    /// Returns what Perfetto shows without an error. Returns `None`, with a loud message, if its
    /// trace processor cannot be set up.
    pub(crate) fn from_perfetto(test: &str, trace: &Path) -> Option<View> {
        let queries = [ERRORS, SLICES, FLOWS, COUNTERS, PROCESSES, ROWS];
        let rows = query(test, trace, &queries)?;
        assert!(rows[0].is_empty(), "{test}: {:?}", rows[0]);
        let mut view = View {
            slices: number(&rows[1]),
            flows: number(&rows[2]),
            counters: number(&rows[3]),
            processes: number(&rows[4]),
            ..View::default()
        };
        rows[5].iter().for_each(|row| view.add_row(row));
        Some(view)
    }

    /// Computes the numbers from the events of a trace.
    pub(crate) fn from_trace(trace: &Trace) -> View {
        let series = |counter: &&Value| counter["args"].as_object().unwrap().len() as u64;
        let count = |phases: &[&str]| {
            let counts = phases.iter().map(|phase| trace.phase(phase).len() as u64);
            counts.sum::<u64>()
        };
        let mut view = View {
            slices: count(&["X", "B", "i", "I", "b", "n"]),
            flows: count(&["t", "f"]),
            counters: trace.phase("C").iter().map(series).sum(),
            processes: trace.process_names().len() as u64,
            ..View::default()
        };
        view.add_threads(trace);
        view
    }

    /// Adds the slices on the threads of a trace.
    fn add_threads(&mut self, trace: &Trace) {
        let (processes, threads) = (trace.process_names(), trace.thread_names());
        let mut begun: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| is_on_thread(event)) {
            let pid = event["pid"].to_string();
            let thread = format!("{pid}/{}", event["tid"]);
            let name =
                |names: &BTreeMap<_, String>, key| names.get(key).cloned().unwrap_or_default();
            let track = (name(&processes, &pid), name(&threads, &thread));
            let open = begun.entry(thread).or_default();
            let (slices, dur_ns) = match event["ph"].as_str() {
                Some("X") => (1, ns(&event["dur"])),
                Some("B") => {
                    open.push(ns(&event["ts"]));
                    (1, 0)
                }
                Some("E") => {
                    let begin = open.pop();
                    (0, begin.map_or(0, |from_ns| ns(&event["ts"]) - from_ns))
                }
                _ => (1, 0),
            };
            self.add(track, slices, dur_ns);
        }
    }

    /// Adds a row of `[process, thread, slices, ns]`.
    pub(crate) fn add_row(&mut self, row: &Value) {
        let name = |at: usize| row[at].as_str().unwrap().to_owned();
        let (slices, ns) = (row[2].as_u64().unwrap(), row[3].as_i64().unwrap());
        self.add((name(0), name(1)), slices, ns);
    }

    fn add(&mut self, track: (String, String), slices: u64, ns: i64) {
        let sum = self.threads.entry(track).or_default();
        *sum = (sum.0 + slices, sum.1 + ns);
    }

    /// Returns the numbers, each on a line.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "slices {}\nflows {}\ncounters {}\nprocesses {}\n",
            self.slices, self.flows, self.counters, self.processes
        );
        for ((process, thread), (slices, ns)) in &self.threads {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{process} | {thread} | {slices} | {ns} ns");
        }
        text
    }
}

/// Returns true if the event is on the track of its thread.
fn is_on_thread(event: &Value) -> bool {
    let is_instant = event["ph"] == "i" || event["ph"] == "I";
    let is_span = ["X", "B", "E"].iter().any(|phase| event["ph"] == *phase);
    is_span || is_instant && event["s"] != "p" && event["s"] != "g"
}
