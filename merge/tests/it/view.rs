//! What a viewer shows of a trace, in numbers; and what it should, by the trace's own events.

use crate::perfetto::{ERRORS, FLOWS, SLICES, number, query};
use crate::trace::{Trace, ns};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Numbers of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Spans and instants, those of async events and processes too.
    pub(crate) slices: u64,
    /// Arrows: one less than its flow has events.
    pub(crate) flows: u64,
    /// Samples, one for each series of a counter.
    pub(crate) counters: u64,
    /// Processes with a name.
    pub(crate) processes: u64,
    /// By the names of process and thread: slices, and the ns of those that ended.
    pub(crate) rows: BTreeMap<(String, String), (u64, i64)>,
}

const PROCESSES: &str = "select count(*) from process where name is not null";
const COUNTERS: &str = "select count(*) from counter";
const ROWS: &str = "select ifnull(process.name, ''), ifnull(thread.name, ''), count(*), sum(max(slice.dur, 0)) from slice \
    join thread_track on slice.track_id = thread_track.id join thread using (utid) left join process using (upid) group by utid";

impl View {
    /// What Perfetto shows, without an error; nothing (said loudly) where its trace processor cannot be set up.
    pub(crate) fn of_perfetto(test: &str, trace: &Path) -> Option<View> {
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

    /// What the events of a trace say.
    pub(crate) fn of_trace(trace: &Trace) -> View {
        let pids = named(trace, "process_name").map(|record| record["pid"].to_string());
        let series = |counter: &&Value| counter["args"].as_object().unwrap().len() as u64;
        let count = |phases: &[&str]| {
            let counts = phases.iter().map(|phase| trace.phase(phase).len() as u64);
            counts.sum::<u64>()
        };
        let mut view = View {
            slices: count(&["X", "B", "i", "I", "b", "n"]),
            flows: count(&["t", "f"]),
            counters: trace.phase("C").iter().map(series).sum(),
            processes: pids.collect::<BTreeSet<_>>().len() as u64,
            ..View::default()
        };
        view.add_threads(trace);
        view
    }

    /// Adds what stands on the rows of a trace's threads.
    fn add_threads(&mut self, trace: &Trace) {
        let processes = trace.process_names();
        let threads = named(trace, "thread_name");
        let threads: BTreeMap<(String, String), &str> = threads
            .map(|record| (place(record), record["args"]["name"].as_str().unwrap()))
            .collect();
        let mut begun: BTreeMap<(String, String), Vec<i64>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| is_of_thread(event)) {
            let place = place(event);
            let process = processes.get(&place.0).cloned().unwrap_or_default();
            let thread = threads.get(&place).copied().unwrap_or_default();
            let open = begun.entry(place).or_default();
            let (slices, dur_ns) = match event["ph"].as_str() {
                Some("X") => (1, ns(&event["dur"])),
                Some("B") => {
                    open.push(ns(&event["ts"]));
                    (1, 0)
                }
                Some("E") => (
                    0,
                    open.pop().map_or(0, |from_ns| ns(&event["ts"]) - from_ns),
                ),
                _ => (1, 0),
            };
            self.add((process, thread.to_owned()), slices, dur_ns);
        }
    }

    /// Adds a row of `[process, thread, slices, ns]`.
    pub(crate) fn add_row(&mut self, row: &Value) {
        let name = |at: usize| row[at].as_str().unwrap().to_owned();
        let (slices, ns) = (row[2].as_u64().unwrap(), row[3].as_i64().unwrap());
        self.add((name(0), name(1)), slices, ns);
    }

    fn add(&mut self, row: (String, String), slices: u64, ns: i64) {
        let sum = self.rows.entry(row).or_default();
        *sum = (sum.0 + slices, sum.1 + ns);
    }

    /// The numbers, a line each.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "slices {}\nflows {}\ncounters {}\nprocesses {}\n",
            self.slices, self.flows, self.counters, self.processes
        );
        for ((process, thread), (slices, ns)) in &self.rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{process} | {thread} | {slices} | {ns} ns");
        }
        text
    }
}

/// The metadata records of this name.
fn named<'a>(trace: &'a Trace, what: &'a str) -> impl Iterator<Item = &'a Value> {
    let records = trace.phase("M").into_iter();
    records.filter(move |record| record["name"] == what)
}

fn place(event: &Value) -> (String, String) {
    (event["pid"].to_string(), event["tid"].to_string())
}

/// Whether it stands on its thread's row.
fn is_of_thread(event: &Value) -> bool {
    let is_instant = event["ph"] == "i" || event["ph"] == "I";
    let is_span = ["X", "B", "E"].iter().any(|phase| event["ph"] == *phase);
    is_span || is_instant && event["s"] != "p" && event["s"] != "g"
}
