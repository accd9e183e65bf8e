//! The host's spans in the merged trace, as a user opens it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace_merge::{EventOptions, Filter, Mode, Options, Output, Report, Runs};

/// A merged trace and the merge's report.
#[derive(Debug)]
pub struct Merged<Event = Value> {
    events: Vec<Event>,
    report: Report,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trace<Event> {
    trace_events: Vec<Event>,
}

impl<Event: DeserializeOwned> Merged<Event> {
    /// Merges the newest run of a directory, and reads what the events have of these fields.
    pub fn read(dir: &Path) -> Self {
        Merged::with(Options::new([dir.to_owned()]))
    }

    /// Merges; the trace goes to a scratch directory, for the run's own may be full.
    pub fn with(mut options: Options) -> Self {
        let scratch = super::scratch();
        let path = scratch.path().join("trace.json");
        options.output = Output::File(path.clone());
        let report = trace_merge::merge(&options).expect("the run merges");
        let bytes = std::fs::read(&path).expect("the merged trace");
        let trace: Trace<Event> = serde_json::from_slice(&bytes).expect("a trace in JSON");
        Merged {
            events: trace.trace_events,
            report,
        }
    }

    /// All events of the trace.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events alone.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// The merge's report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The host's time that the trace counts from.
    pub fn base_ns(&self) -> u64 {
        self.report.clocks.base_ns.unsigned_abs()
    }

    /// The lost events that the report counts.
    pub fn lost(&self) -> u64 {
        self.report.losses.events
    }

    /// The damage in the report, in words.
    pub fn damage(&self) -> Vec<String> {
        let damage = &self.report.damage;
        assert!(!damage.list.is_empty() || damage.total == 0, "none listed");
        let listed = damage.list.iter();
        listed.map(|damage| format!("{damage:?}")).collect()
    }
}

impl Merged {
    /// Merges the newest run of a directory.
    pub fn newest(dir: &Path) -> Merged {
        Merged::of(dir, Runs::Newest)
    }

    /// Merges the runs of a directory that are asked for.
    pub fn of(dir: &Path, runs: Runs) -> Merged {
        let options = Options::new([dir.to_owned()]);
        Merged::with(Options { runs, ..options })
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

    fn host_spans(&self) -> impl Iterator<Item = &Value> {
        let events = self.events.iter();
        events.filter(|event| event["ph"] == "X" && event["cat"] == "host")
    }

    /// The number of the host program's spans.
    pub fn spans(&self) -> u64 {
        self.host_spans().count() as u64
    }

    /// The number of spans of each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        let labels = self.host_spans().map(|span| &span["args"]["label"]);
        for label in labels.filter_map(Value::as_str) {
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
        let events = self.events.iter();
        events.filter(move |event| event["name"] == name)
    }

    /// The number of events of one name.
    pub fn named(&self, name: &str) -> usize {
        self.of_name(name).count()
    }

    /// The names in metadata events of one kind, in the order of the trace.
    pub fn told_names(&self, name: &str) -> Vec<&str> {
        let told = self.of_name(name).map(|event| &event["args"]["name"]);
        told.filter_map(Value::as_str).collect()
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

    /// The number of rows that have spans of the host program.
    pub fn rows(&self) -> u64 {
        distinct(self.host_spans().map(|event| format!("{:?}", row(event))))
    }

    /// The last name of each row.
    pub fn row_names(&self) -> BTreeMap<Row, &str> {
        let names = self.of_name("thread_name");
        names
            .filter_map(|event| Some((row(event), event["args"]["name"].as_str()?)))
            .collect()
    }

    /// The last names of the rows that have events of this name.
    pub fn rows_of(&self, name: &str) -> BTreeSet<&str> {
        let names = self.row_names();
        let events = self.of_name(name).filter(|event| event["ph"] != "M");
        events
            .filter_map(|event| names.get(&row(event)).copied())
            .collect()
    }

    /// The children that could not record, as the report counts them.
    pub fn refused(&self) -> u64 {
        self.report.losses.refused_processes
    }

    /// The whole report in words.
    pub fn words(&self) -> String {
        self.report.text()
    }

    /// The number of loss events in the trace.
    pub fn losses(&self) -> u64 {
        distinct(self.of_name("sa_loss").map(Value::to_string))
    }
}

/// Process and thread of an event as a viewer shows them.
pub type Row = (u64, u64);

/// Returns the row of an event.
pub fn row(event: &Value) -> Row {
    let id = |key: &str| event[key].as_u64().unwrap_or_default();
    (id("pid"), id("tid"))
}

fn distinct(values: impl Iterator<Item = String>) -> u64 {
    values.collect::<BTreeSet<_>>().len() as u64
}
