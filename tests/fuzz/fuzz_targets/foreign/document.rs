//! Reads a trace with serde_json, before and after it is merged.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Phases of events with a time, except for those whose names the merge writes itself.
const PHASES: [&str; 12] = ["X", "B", "E", "i", "I", "C", "s", "t", "f", "b", "n", "e"];
/// Times beyond this are not exact in a double.
const MOST_US: f64 = 1e15;

/// Events of an input that must be in the merged trace.
pub(crate) struct Expected {
    pub(crate) names: Vec<String>,
    /// True if the input contains nothing else.
    pub(crate) is_all: bool,
}

impl Expected {
    /// Reads the expected events. Returns `None` if the text is not a trace, or contains duplicates or escapes that only a full JSON reader handles.
    pub(crate) fn from_input(text: &[u8]) -> Option<Expected> {
        let count = |words: &[u8]| {
            text.windows(words.len())
                .filter(|window| *window == words)
                .count()
        };
        if count(b"\\") > 0 || count(b"sa_") > 0 || count(b"traceEvents") > 1 {
            return None;
        }
        let document: Value = serde_json::from_slice(text).ok()?;
        let all = match &document {
            Value::Object(members) if members.contains_key("ph") => return None,
            Value::Object(members) => members.get("traceEvents")?.as_array()?,
            Value::Array(events) => events,
            _ => return None,
        };
        // Any other array is treated as lines of text.
        if document.is_array() && !all.first()?.is_object() {
            return None;
        }
        let good: Vec<&Map<String, Value>> = all.iter().filter_map(good_event).collect();
        let name = |event: &&Map<String, Value>| event["name"].as_str().unwrap_or("").to_owned();
        Some(Expected {
            is_all: good.len() == all.len(),
            names: good.iter().map(name).collect(),
        })
    }
}

/// Returns the event in a value if it has everything that an event needs.
fn good_event(value: &Value) -> Option<&Map<String, Value>> {
    let event = value.as_object()?;
    let phase = event.get("ph")?.as_str()?;
    let is_time = |time: f64| time.abs() < MOST_US;
    let has_time = |key: &str| event.get(key).and_then(Value::as_f64).is_some_and(is_time);
    let is_id = |key: &str| {
        event
            .get(key)
            .is_none_or(|id| id.as_u64().is_some_and(|id| id < 1 << 31))
    };
    let has_length = phase != "X"
        || has_time("dur") && event["dur"].as_f64()? >= 0.0 && event["dur"].to_string() != "-0.0";
    let has_id = !matches!(phase, "s" | "t" | "f" | "b" | "n" | "e")
        || event
            .get("id")
            .is_some_and(|id| id.is_string() || id.is_i64());
    let values = event.get("args").and_then(Value::as_object);
    let has_values =
        phase != "C" || values.is_some_and(|values| values.values().any(Value::is_number));
    let is_good = PHASES.contains(&phase)
        && has_id
        && has_values
        && event.get("name")?.is_string()
        && has_time("ts")
        && has_length
        && is_id("pid")
        && is_id("tid");
    is_good.then_some(event)
}

/// Contents of a merged trace.
pub(crate) struct Shown {
    pub(crate) events: u64,
    /// Number of complete spans; `None` if serde_json cannot read every event, for example because a number does not fit into a double.
    pub(crate) complete: Option<u64>,
    /// Names of the events, sorted.
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<&'a RawValue>,
}

impl Shown {
    pub(crate) fn read(text: &[u8]) -> Shown {
        let document: Document<'_> = serde_json::from_slice(text).expect("the trace is JSON");
        let (mut complete, mut names) = (Some(0), Vec::new());
        for event in &document.events {
            let Ok(event) = serde_json::from_str::<Value>(event.get()) else {
                complete = None;
                continue;
            };
            complete = complete.map(|complete| complete + u64::from(event["ph"] == "X"));
            names.extend(event["name"].as_str().map(str::to_owned));
        }
        names.sort();
        Shown {
            events: document.events.len() as u64,
            complete,
            names,
        }
    }

    /// Returns true if the trace contains each name as often as this sorted list does.
    pub(crate) fn has_all(&self, names: &[String]) -> bool {
        let mut shown = self.names.iter();
        names.iter().all(|name| shown.any(|other| other == name))
    }
}
