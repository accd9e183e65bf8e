//! The host's spans in the merged trace, as a user opens it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_merge::{EventOptions, Filter, Mode, Options, Output, Report, Runs};

/// A merged trace and the merge's report.
#[derive(Debug)]
pub struct Merged {
    events: Vec<Value>,
    report: Report,
}

impl Merged {
    /// Merges the newest run of a directory.
    pub fn newest(dir: &Path) -> Merged {
        Merged::of(dir, Runs::Newest)
    }

    /// Merges the previous run of a directory.
    pub fn previous(dir: &Path) -> Merged {
        Merged::of(dir, Runs::Previous)
    }

    /// Merges all runs of a directory.
    pub fn all_runs(dir: &Path) -> Merged {
        Merged::of(dir, Runs::All)
    }

    /// Merges the newest run of a directory, and shows a part of it.
    pub fn filtered(dir: &Path, filter: Filter) -> Merged {
        let mut options = Options::new([dir.to_owned()]);
        options.mode = Mode::Events(EventOptions {
            filter,
            ..EventOptions::default()
        });
        Merged::with(options)
    }

    fn of(dir: &Path, runs: Runs) -> Merged {
        let mut options = Options::new([dir.to_owned()]);
        options.runs = runs;
        Merged::with(options)
    }

    /// Merges; the trace goes to a scratch directory, for the run's own may be full.
    fn with(mut options: Options) -> Merged {
        let scratch = super::scratch();
        let path = scratch.path().join("trace.json");
        options.output = Output::File(path.clone());
        let report = trace_merge::merge(&options).expect("the run merges");
        let bytes = std::fs::read(&path).expect("the merged trace");
        let mut trace: Value = serde_json::from_slice(&bytes).expect("the merged trace is JSON");
        let Value::Array(events) = trace["traceEvents"].take() else {
            panic!("no traceEvents")
        };
        Merged { events, report }
    }

    /// All events of the trace.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    /// The merge's report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The host's time that the trace counts from.
    pub fn base_ns(&self) -> u64 {
        self.report.clocks.base_ns.unsigned_abs()
    }

    fn host_spans(&self) -> impl Iterator<Item = &Value> {
        self.events
            .iter()
            .filter(|event| event["ph"] == "X" && event["cat"] == "host")
    }

    /// The number of the host program's spans.
    pub fn spans(&self) -> u64 {
        u64::try_from(self.host_spans().count()).expect("a count fits 64 bits")
    }

    /// The number of spans of each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for label in self
            .host_spans()
            .filter_map(|event| event["args"]["label"].as_str())
        {
            *counts.entry(label.to_owned()).or_insert(0) += 1;
        }
        counts
    }

    /// The number of spans of one label.
    pub fn count(&self, label: &str) -> u64 {
        self.counts().get(label).copied().unwrap_or(0)
    }

    /// The labels of its spans, sorted.
    pub fn labels(&self) -> Vec<String> {
        self.counts().into_keys().collect()
    }

    /// The events of one name, whatever they are.
    pub fn of_name(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.events
            .iter()
            .filter(move |event| event["name"] == name)
    }

    /// The number of events of one name.
    pub fn named(&self, name: &str) -> usize {
        self.of_name(name).count()
    }

    /// Returns the first event of one name that is not metadata.
    ///
    /// # Panics
    /// Panics if the trace does not contain such an event.
    pub fn event(&self, name: &str) -> &Value {
        let mut events = self.of_name(name).filter(|event| event["ph"] != "M");
        events.next().unwrap_or_else(|| panic!("no {name}"))
    }

    /// The number of processes that have spans of the host program.
    pub fn processes(&self) -> u64 {
        distinct(self.host_spans().map(|event| event["pid"].to_string()))
    }

    /// The number of threads that have spans of the host program.
    pub fn threads(&self) -> u64 {
        distinct(
            self.host_spans()
                .map(|event| format!("{} {}", event["pid"], event["tid"])),
        )
    }

    /// The names of the threads, each once, sorted.
    pub fn thread_names(&self) -> Vec<String> {
        let names = self.of_name("thread_name");
        let names = names.filter_map(|event| event["args"]["name"].as_str());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        names.into_iter().collect()
    }

    /// The start of the first span of a label, in µs.
    pub fn start_us(&self, label: &str) -> f64 {
        let span = self
            .host_spans()
            .find(|event| event["args"]["label"] == label);
        span.and_then(|span| span["ts"].as_f64())
            .unwrap_or_else(|| panic!("no span {label}"))
    }

    /// The lost events that the report counts.
    pub fn lost(&self) -> u64 {
        self.report.losses.events
    }

    /// The children that could not record, as the report counts them.
    pub fn refused(&self) -> u64 {
        self.report.losses.refused_processes
    }

    /// The whole report in words.
    pub fn words(&self) -> String {
        self.report.text()
    }

    /// What the report calls damaged, in words.
    pub fn damage(&self) -> Vec<String> {
        let damage = self.report.damage.list.iter();
        damage.map(|damage| format!("{damage:?}")).collect()
    }

    /// The number of loss events in the trace.
    pub fn losses(&self) -> u64 {
        distinct(self.of_name("sa_loss").map(Value::to_string))
    }
}

fn distinct(values: impl Iterator<Item = String>) -> u64 {
    let values: BTreeSet<String> = values.collect();
    u64::try_from(values.len()).expect("a count fits 64 bits")
}
