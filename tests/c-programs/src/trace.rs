//! A run's merged trace.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_merge::check::Finding;
use trace_merge::{Options, Output, Report};

/// Events of a trace, and the merge's report.
#[derive(Debug)]
pub struct Trace {
    /// All events.
    pub events: Vec<Value>,
    /// The merge's report.
    pub report: Report,
    /// Findings about events that viewers would not show.
    pub findings: Vec<Finding>,
}

impl Trace {
    /// Merges a run directory and asserts that no events were lost.
    pub fn merge(directory: &Path) -> Trace {
        let trace = Trace::with_losses(directory);
        assert_eq!(trace.lost(), 0);
        trace
    }

    /// Merges a run directory that may have lost events, and asserts that viewers show everything.
    pub fn with_losses(directory: &Path) -> Trace {
        let trace = Trace::merged(directory);
        assert_eq!(trace.findings, []);
        trace
    }

    /// Merges a run directory that may have lost events or contain events that viewers do not show.
    pub fn merged(directory: &Path) -> Trace {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("trace.json");
        let mut options = Options::new([directory.to_owned()]);
        options.output = Output::File(path.clone());
        let report = trace_merge::merge(&options).unwrap();
        assert_eq!(report.damage.total, 0, "{report:?}");
        let findings = trace_merge::check::check(&path).unwrap().findings;
        let mut trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let Value::Array(events) = trace["traceEvents"].take() else {
            panic!("no traceEvents")
        };
        Trace {
            events,
            report,
            findings,
        }
    }

    /// Returns the number of events that the run has lost.
    pub fn lost(&self) -> u64 {
        self.report.losses.events
    }

    /// Returns all spans and instants, except for the preload library's own `sa_reach` events.
    pub fn recorded(&self) -> impl Iterator<Item = &Value> {
        let recorded = |event: &&Value| event["ph"] == "X" || event["ph"] == "i";
        let recorded = self.events.iter().filter(recorded);
        recorded.filter(|event| event["name"] != "sa_reach")
    }

    /// Returns the spans and instants that have this value in a field or an argument.
    pub fn with(&self, key: &str, value: impl Into<Value>) -> Vec<&Value> {
        let value = value.into();
        let has = |event: &&Value| event[key] == value || event["args"][key] == value;
        self.recorded().filter(has).collect()
    }

    /// Returns the number of spans and instants with this name.
    pub fn count(&self, name: &str) -> usize {
        self.with("name", name).len()
    }

    /// Returns the number of spans and instants by category and name.
    pub fn counts(&self) -> BTreeMap<(&str, &str), usize> {
        let mut counts = BTreeMap::new();
        for event in self.recorded() {
            let text = |key| event[key].as_str().unwrap_or_default();
            *counts.entry((text("cat"), text("name"))).or_insert(0) += 1;
        }
        counts
    }

    /// Returns all events with this name.
    pub fn named(&self, name: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["name"] == name).collect()
    }

    /// Returns the phases of all events with this name as one string.
    pub fn phases(&self, name: &str) -> String {
        let named = self.named(name).into_iter();
        named.filter_map(|event| event["ph"].as_str()).collect()
    }

    /// Returns the only event with this name.
    #[track_caller]
    pub fn only(&self, name: &str) -> &Value {
        let [only] = self.named(name)[..] else {
            panic!("{name}: {:?} of {:?}", self.named(name), self.counts())
        };
        only
    }

    /// Asserts these field values for the only event of each name.
    #[track_caller]
    pub fn assert_fields(&self, expected: &Value) {
        for (name, fields) in expected.as_object().unwrap() {
            for (field, expected) in fields.as_object().unwrap() {
                assert_eq!(self.only(name)[field], *expected, "{name}");
            }
        }
    }

    /// Returns the args of the unfinished spans with this name.
    pub fn unfinished(&self, name: &str) -> Vec<&Value> {
        let begun = self.named(name).into_iter();
        let begun = begun.filter(|event| event["ph"] == "B");
        begun.map(|event| &event["args"]).collect()
    }

    /// Returns the name of each process and device, by process id.
    pub fn process_names(&self) -> BTreeMap<u64, &str> {
        let names = self.named("process_name").into_iter();
        let names = names
            .filter_map(|event| Some((event["pid"].as_u64()?, event["args"]["name"].as_str()?)));
        names.collect()
    }

    /// Returns the processes with recorded spans or instants.
    pub fn processes(&self) -> BTreeSet<u64> {
        self.threads()
            .into_iter()
            .map(|(process, _)| process)
            .collect()
    }

    /// Returns the threads with recorded spans or instants, over all processes.
    pub fn threads(&self) -> BTreeSet<(u64, u64)> {
        let id = |event: &Value| Some((event["pid"].as_u64()?, event["tid"].as_u64()?));
        self.recorded().filter_map(id).collect()
    }
}
