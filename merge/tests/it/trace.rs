//! A merged trace, and its events in a form that does not depend on the ids that the merge
//! assigned.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// A merged trace.
pub(crate) struct Trace {
    pub(crate) document: Value,
    pub(crate) events: Vec<Value>,
}

/// An event in comparable form: `content` is everything except pid, tid and ids, with ts and dur in
/// ns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) content: String,
    pub(crate) process: String,
    pub(crate) thread: String,
    pub(crate) id: Option<String>,
}

impl Trace {
    /// Parses a trace document in either form.
    pub(crate) fn parse(bytes: &[u8]) -> Trace {
        let document: Value =
            serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("trace: {error}"));
        let events = document.get("traceEvents").unwrap_or(&document);
        let events = events.as_array().unwrap().clone();
        Trace { document, events }
    }

    /// Returns the events of phase `phase`.
    pub(crate) fn phase(&self, phase: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["ph"] == phase).collect()
    }

    /// Returns the only event called `name`.
    pub(crate) fn named(&self, name: &str) -> &Value {
        let found = self.all_named(name);
        assert_eq!(found.len(), 1, "events named {name}: {found:?}");
        found[0]
    }

    /// Returns all events called `name`.
    pub(crate) fn all_named(&self, name: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["name"] == name).collect()
    }

    /// Returns the names of all events except metadata, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let names = self.shown().map(|event| event["name"].as_str().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }

    /// Returns all recorded events except metadata.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Value> {
        let is_shown = |event: &&Value| event["ph"] != "M" && !is_link(event) && !is_gap(event);
        self.events.iter().filter(is_shown)
    }

    /// Returns the records that the merge wrote for missing positions that no recorder's record
    /// explains.
    pub(crate) fn gaps(&self) -> Vec<&Value> {
        self.events.iter().filter(|event| is_gap(event)).collect()
    }

    /// Returns the flow events by which the merge links requests.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(|event| is_link(event))
    }

    /// Returns all events except metadata, in comparable form.
    pub(crate) fn comparable(&self) -> Vec<Event> {
        self.shown().map(output_event).collect()
    }

    /// Returns all events except metadata as they were before a window cut them, in comparable
    /// form, and the number of events marked as cut.
    pub(crate) fn whole(&self) -> (Vec<Event>, u64) {
        let whole: Vec<_> = self.shown().map(whole).collect();
        let marks = whole.iter().filter(|(_, is_cut)| *is_cut).count() as u64;
        let events = whole.iter().map(|(event, _)| output_event(event));
        (events.collect(), marks)
    }

    /// Returns the name that a viewer shows for each pid, which is the last one.
    pub(crate) fn process_names(&self) -> BTreeMap<String, String> {
        self.last_names("process_name", |event| event["pid"].to_string())
    }

    /// Returns the name that a viewer shows for each thread, by `pid/tid`.
    pub(crate) fn thread_names(&self) -> BTreeMap<String, String> {
        let thread = |event: &Value| format!("{}/{}", event["pid"], event["tid"]);
        self.last_names("thread_name", thread)
    }

    fn last_names(&self, record: &str, key: impl Fn(&Value) -> String) -> BTreeMap<String, String> {
        let records = self.phase("M").into_iter();
        let records = records.filter(|event| event["name"] == record);
        let name = |event: &Value| event["args"]["name"].as_str().unwrap().to_owned();
        records.map(|event| (key(event), name(event))).collect()
    }
}

fn is_gap(event: &Value) -> bool {
    event["name"] == "sa_loss" && event["args"]["cause"] == "gap"
}

fn is_link(event: &Value) -> bool {
    event["cat"] == "sa_link"
}

fn output_event(event: &Value) -> Event {
    let (pid, tid) = (event["pid"].to_string(), event["tid"].to_string());
    let id = event.get("id").or_else(|| event.get("id2"));
    Event {
        content: content(event, ns(&event["ts"])),
        thread: format!("{pid}/{tid}"),
        process: pid,
        id: id.map(Value::to_string),
    }
}

/// Returns an event as it was before a window or a part cut it, and true if it is marked as cut.
pub(crate) fn whole(event: &Value) -> (Value, bool) {
    let mut event = event.clone();
    let Some(args) = event.get_mut("args").and_then(Value::as_object_mut) else {
        return (event, false);
    };
    let is_cut = args.remove("sa_cut").is_some();
    let times = ["sa_whole_ts", "sa_whole_dur"].map(|key| args.remove(key));
    let is_empty = args.is_empty();
    if is_empty {
        event.as_object_mut().unwrap().remove("args");
    }
    for (key, time) in ["ts", "dur"].into_iter().zip(times) {
        if let Some(time) = time {
            event[key] = time;
        }
    }
    (event, is_cut)
}

/// Converts a time to ns.
pub(crate) fn ns(value: &Value) -> i64 {
    let micros = value.as_f64().unwrap_or_else(|| panic!("a time: {value}"));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tests keep times below 2^53 ns"
    )]
    let ns = (micros * 1000.0).round() as i64;
    ns
}

/// Returns the members of an event that do not depend on ids, as text with sorted keys.
pub(crate) fn content(event: &Value, ts_ns: i64) -> String {
    let mut members = Map::new();
    for (key, value) in event.as_object().unwrap() {
        match key.as_str() {
            "pid" | "tid" | "id" | "id2" | "ts" => {}
            "dur" | "tdur" | "tts" => drop(members.insert(key.clone(), ns(value).into())),
            _ => drop(members.insert(key.clone(), value.clone())),
        }
    }
    members.insert("ts_ns".into(), ts_ns.into());
    Value::Object(members).to_string()
}

/// Asserts that both contain the same events, with processes, threads and ids equal up to renaming.
pub(crate) fn assert_same(expected: &[Event], found: &[Event], what: &str) {
    let (expected, found) = (by_content(expected), by_content(found));
    for (content, events) in &expected {
        let count = found.get(content).map_or(0, Vec::len);
        assert_eq!(events.len(), count, "{what}: how often it has {content}");
    }
    for content in found.keys() {
        let is_expected = expected.contains_key(content);
        assert!(is_expected, "{what}: it should not have {content}");
    }
    let mut renames = [(); 3].map(|()| Renames::default());
    for (content, events) in expected.iter().filter(|(_, events)| events.len() == 1) {
        let (ours, theirs) = (&events[0], &found[content][0]);
        renames[0].pair(&ours.process, &theirs.process, what);
        renames[1].pair(&ours.thread, &theirs.thread, what);
        match (&ours.id, &theirs.id) {
            (Some(ours), Some(theirs)) => renames[2].pair(ours, theirs, what),
            (ours, theirs) => assert_eq!(ours, theirs, "{what}: an id on {content}"),
        }
    }
}

fn by_content(events: &[Event]) -> BTreeMap<&str, Vec<&Event>> {
    let mut groups: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in events {
        groups.entry(&event.content).or_default().push(event);
    }
    groups
}

/// A one-to-one renaming.
#[derive(Default)]
struct Renames {
    forward: HashMap<String, String>,
    backward: HashMap<String, String>,
}

impl Renames {
    fn pair(&mut self, ours: &str, theirs: &str, what: &str) {
        let forward = self.forward.entry(ours.to_owned());
        let forward = forward.or_insert_with(|| theirs.to_owned());
        assert_eq!(forward, theirs, "{what}: {ours} was split");
        let backward = self.backward.entry(theirs.to_owned());
        let backward = backward.or_insert_with(|| ours.to_owned());
        assert_eq!(backward, ours, "{what}: {theirs} was joined from two");
    }
}
