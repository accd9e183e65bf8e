//! The host's spans in the merged trace.

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
    /// Merges the newest run in a directory and deserializes its events.
    pub fn read(dir: &Path) -> Self {
        Merged::with(Options::new([dir.to_owned()]))
    }

    /// Merges with these options. The trace is written to a scratch directory, because the disk of the run may be full.
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

    /// Returns all events of the trace.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns all events of the trace by value.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Returns the merge's report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the time on the host's clock at which the trace begins.
    pub fn base_ns(&self) -> u64 {
        self.report.clocks.base_ns.unsigned_abs()
    }

    /// Returns the number of lost events in the report.
    pub fn lost(&self) -> u64 {
        self.report.losses.events
    }

    /// Returns the damage in the report as text.
    pub fn damage(&self) -> Vec<String> {
        let damage = &self.report.damage;
        assert!(!damage.list.is_empty() || damage.total == 0, "none listed");
        let listed = damage.list.iter();
        listed.map(|damage| format!("{damage:?}")).collect()
    }
}

impl Merged {
    /// Merges the newest run in a directory.
    pub fn newest(dir: &Path) -> Merged {
        Merged::select(dir, Runs::Newest)
    }

    /// Merges the selected runs in a directory.
    pub fn select(dir: &Path, runs: Runs) -> Merged {
        let options = Options::new([dir.to_owned()]);
        Merged::with(Options { runs, ..options })
    }

    /// Merges the newest run in a directory and applies a filter.
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

    /// Returns the number of spans of the host program.
    pub fn spans(&self) -> u64 {
        self.host_spans().count() as u64
    }

    /// Returns the number of spans for each label.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        let labels = self.host_spans().map(|span| &span["args"]["label"]);
        for label in labels.filter_map(Value::as_str) {
            *counts.entry(label.to_owned()).or_insert(0) += 1;
        }
        counts
    }

    /// Returns the number of spans with this label.
    pub fn count(&self, label: &str) -> u64 {
        self.counts().get(label).copied().unwrap_or(0)
    }

    /// Returns the labels of the spans, sorted.
    pub fn labels(&self) -> Vec<String> {
        self.counts().into_keys().collect()
    }

    /// Returns the events with this name, of any phase.
    pub fn events_named(&self, name: &str) -> impl Iterator<Item = &Value> {
        let events = self.events.iter();
        events.filter(move |event| event["name"] == name)
    }

    /// Returns the number of events with this name.
    pub fn count_named(&self, name: &str) -> usize {
        self.events_named(name).count()
    }

    /// Returns the `args.name` of the metadata events of one kind, in trace order.
    pub fn metadata_names(&self, name: &str) -> Vec<&str> {
        let names = self.events_named(name).map(|event| &event["args"]["name"]);
        names.filter_map(Value::as_str).collect()
    }

    /// Returns the first event of one name that is not metadata.
    ///
    /// # Panics
    /// If the trace does not contain such an event.
    pub fn event(&self, name: &str) -> &Value {
        let mut events = self.events_named(name).filter(|event| event["ph"] != "M");
        events.next().unwrap_or_else(|| panic!("no {name}"))
    }

    /// Returns the number of processes with spans of the host program.
    pub fn processes(&self) -> u64 {
        distinct(self.host_spans().map(|event| event["pid"].to_string()))
    }

    /// Returns the number of tracks with spans of the host program.
    pub fn tracks(&self) -> u64 {
        distinct(self.host_spans().map(|event| format!("{:?}", track(event))))
    }

    /// Returns the last name of each track.
    pub fn track_names(&self) -> BTreeMap<Track, &str> {
        let names = self.events_named("thread_name");
        names
            .filter_map(|event| Some((track(event), event["args"]["name"].as_str()?)))
            .collect()
    }

    /// Returns the last names of the tracks that contain events with this name.
    pub fn tracks_with(&self, name: &str) -> BTreeSet<&str> {
        let names = self.track_names();
        let events = self.events_named(name).filter(|event| event["ph"] != "M");
        events
            .filter_map(|event| names.get(&track(event)).copied())
            .collect()
    }

    /// Returns the number of child processes that could not record, from the report.
    pub fn refused(&self) -> u64 {
        self.report.losses.refused_processes
    }

    /// Returns the whole report as text.
    pub fn words(&self) -> String {
        self.report.text()
    }

    /// Returns the number of distinct loss events in the trace.
    pub fn losses(&self) -> u64 {
        distinct(self.events_named("sa_loss").map(Value::to_string))
    }
}

/// Process and thread of an event, which viewers show as one track.
pub type Track = (u64, u64);

/// Returns the track of an event.
pub fn track(event: &Value) -> Track {
    let id = |key: &str| event[key].as_u64().unwrap_or_default();
    (id("pid"), id("tid"))
}

fn distinct(values: impl Iterator<Item = String>) -> u64 {
    values.collect::<BTreeSet<_>>().len() as u64
}
