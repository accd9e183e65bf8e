//! A run's merged trace.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_merge::{Options, Output, Report};

/// The events of a trace.
#[derive(Debug)]
pub(crate) struct Trace {
    events: Vec<Value>,
    report: Report,
}

impl Trace {
    /// Merges a run directory that has lost nothing.
    pub(crate) fn of(directory: &Path) -> Trace {
        let trace = Trace::with_losses(directory);
        assert_eq!(trace.lost(), 0);
        trace
    }

    /// Merges a run directory that may have lost events.
    pub(crate) fn with_losses(directory: &Path) -> Trace {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("trace.json");
        let mut options = Options::new([directory.to_owned()]);
        options.output = Output::File(path.clone());
        let report = trace_merge::merge(&options).unwrap();
        assert_eq!(report.damage.list.len(), 0, "{report:?}");
        let check = trace_merge::check::check(&path).unwrap();
        assert_eq!(check.findings, []);
        let mut trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let Value::Array(events) = trace["traceEvents"].take() else {
            panic!("no traceEvents")
        };
        Trace { events, report }
    }

    /// Returns the number of events that the run has lost.
    pub(crate) fn lost(&self) -> u64 {
        self.report.losses.events
    }

    /// The lines of the summary about what this library does not see.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let text = self.report.text();
        let lines = text.lines().filter(|line| line.starts_with("reach: "));
        lines.map(str::to_owned).collect()
    }

    /// The spans and instants of one category.
    pub(crate) fn of_category(&self, category: &str) -> Vec<&Value> {
        self.recorded()
            .filter(|event| event["cat"] == category)
            .collect()
    }

    /// All spans and instants, but what this library says of its reach.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = &Value> {
        let events = self.events.iter();
        let recorded = events.filter(|event| event["ph"] == "X" || event["ph"] == "i");
        recorded.filter(|event| event["name"] != "sa_reach")
    }

    /// The args of what this library says of its reach.
    pub(crate) fn reach(&self) -> Vec<&Value> {
        let said = self.events.iter();
        let said = said.filter(|event| event["name"] == "sa_reach" && event["ph"] == "i");
        said.map(|event| &event["args"]).collect()
    }

    /// How often each category and name is there, of the categories that this library records.
    pub(crate) fn counts(&self) -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for event in self.recorded() {
            *counts
                .entry((text(&event["cat"]), text(&event["name"])))
                .or_insert(0) += 1;
        }
        counts
    }

    /// How often a name is there.
    pub(crate) fn count(&self, name: &str) -> usize {
        let named = self.recorded().filter(|event| event["name"] == name);
        named.count()
    }

    /// The last value of one line of a counter, if it has one.
    pub(crate) fn last_of_counter(&self, name: &str, line: &str) -> Option<u64> {
        let counters = self.events.iter().filter(|event| event["ph"] == "C");
        let named = counters.filter(|event| event["name"] == name);
        named
            .filter_map(|event| event["args"][line].as_u64())
            .next_back()
    }

    /// The args of the spans of a name that never ended.
    pub(crate) fn unfinished(&self, name: &str) -> Vec<&Value> {
        let begun = self.events.iter();
        let begun = begun.filter(|event| event["name"] == name && event["ph"] == "B");
        begun.map(|event| &event["args"]).collect()
    }

    /// The one event of a name.
    pub(crate) fn only(&self, name: &str) -> &Value {
        let mut named = self.recorded().filter(|event| event["name"] == name);
        let first = named.next();
        assert!(named.next().is_none(), "{name} is there twice");
        first.unwrap_or_else(|| panic!("{name} is not there: {:?}", self.counts()))
    }

    /// The names of the processes, also of those that stand for devices.
    pub(crate) fn process_names(&self) -> Vec<&str> {
        let named = self.events.iter();
        let named = named.filter(|event| event["name"] == "process_name");
        named
            .filter_map(|event| event["args"]["name"].as_str())
            .collect()
    }

    /// The name of the process of an event.
    pub(crate) fn process_of(&self, of: &Value) -> &str {
        let mut named = self.events.iter().filter(|event| event["pid"] == of["pid"]);
        let found = named.find(|event| event["name"] == "process_name");
        found
            .and_then(|event| event["args"]["name"].as_str())
            .unwrap_or_default()
    }

    /// The ids of the processes that recorded something.
    pub(crate) fn processes(&self) -> BTreeSet<String> {
        self.recorded()
            .map(|event| event["pid"].to_string())
            .collect()
    }

    /// The ids of the threads that recorded something, of all processes.
    pub(crate) fn threads(&self) -> BTreeSet<(String, String)> {
        let id = |event: &Value| (event["pid"].to_string(), event["tid"].to_string());
        self.recorded().map(id).collect()
    }
}
