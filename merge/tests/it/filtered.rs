//! A naive filter of the events of a whole trace.

use crate::trace::Event;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One of each option at most, as written on the command line without its dashes.
pub(crate) type Asked<'a> = BTreeMap<&'a str, Vec<String>>;

/// Returns true if one of the option's values is met, or if the option has no values.
fn is_any(asked: &Asked, option: &str, is_met: impl Fn(&str) -> bool) -> bool {
    let values = asked.get(option);
    values.is_none_or(|values| values.iter().any(|value| is_met(value)))
}

/// An event of the whole trace.
pub(crate) struct One {
    value: Value,
    thread: String,
    process: String,
    id: String,
}

/// The thread of an event that all events around it may have moved to a row beside it.
fn on_own_row(thread: &str) -> String {
    let own = thread.split(", row ").next();
    own.unwrap_or(thread).to_owned()
}

impl One {
    pub(crate) fn of(event: &Event) -> One {
        One {
            value: serde_json::from_str(&event.content).unwrap(),
            thread: on_own_row(&event.thread),
            process: event.process.clone(),
            id: event.id.clone().unwrap_or_default(),
        }
    }

    fn ts_ns(&self) -> i64 {
        self.value["ts_ns"].as_i64().unwrap()
    }

    fn text(&self, key: &str) -> String {
        self.value[key].as_str().unwrap_or_default().to_owned()
    }

    fn pid(&self) -> &str {
        self.process.rsplit_once('#').unwrap().1
    }

    pub(crate) fn process_is_asked_for(&self, asked: &Asked) -> bool {
        let name = match self.pid() {
            "200" => "foreign-200".to_owned(),
            pid => format!("serve.py[{pid}]"),
        };
        is_any(asked, "pid", |pid| pid == self.pid())
            && is_any(asked, "process", |part| name.contains(part))
    }

    fn is_asked_for(&self, asked: &Asked) -> bool {
        let name = |glob: &str| match glob.strip_suffix('*') {
            Some(prefix) => self.text("name").starts_with(prefix),
            None => self.text("name") == glob,
        };
        let args = &self.value["args"];
        let ids = args["request_ids"].as_array();
        let request = |id: &str| {
            let is_listed = ids.is_some_and(|ids| ids.contains(&json!(id)));
            args["request_id"] == id || is_listed
        };
        is_any(asked, "name", name)
            && is_any(asked, "cat", |cat| self.text("cat") == cat)
            && is_any(asked, "request", request)
    }

    fn phase(&self) -> char {
        self.text("ph").chars().next().unwrap()
    }

    /// Whether it reaches into a window in ns from the begin of the run.
    pub(crate) fn reaches(&self, (from_ns, to_ns): (i64, i64)) -> bool {
        let is_open = self.value["args"]["unfinished"] == true;
        let end_ns = self.ts_ns() + self.value["dur"].as_i64().unwrap_or(0);
        self.ts_ns() <= to_ns && (end_ns >= from_ns || is_open)
    }

    /// Where it is open, if it is a span.
    fn span(&self) -> Option<(i64, i64)> {
        let start_ns = self.ts_ns();
        match self.phase() {
            'X' => Some((start_ns, start_ns + self.value["dur"].as_i64().unwrap())),
            'B' => Some((start_ns, i64::MAX)),
            _ => None,
        }
    }
}

/// The flow events that are shown: those in spans that are, if spans are chosen, with another end.
fn flows<'a>(all: &'a [One], shown: &[&One], asked: &Asked) -> Vec<&'a One> {
    let of_events = ["name", "cat", "request"]
        .iter()
        .any(|key| asked.contains_key(key));
    let is_covered = |flow: &One| {
        let on_thread = shown.iter().filter(|one| one.thread == flow.thread);
        let mut spans = on_thread.filter_map(|one| one.span());
        spans.any(|(start, end)| (start..end).contains(&flow.ts_ns()))
    };
    let mut by_id: BTreeMap<&str, Vec<&One>> = BTreeMap::new();
    let flows = all.iter().filter(|one| "stf".contains(one.phase()));
    for flow in flows.filter(|one| one.process_is_asked_for(asked)) {
        // The foreign ones have a name of their own.
        if !of_events || is_covered(flow) {
            by_id.entry(&flow.id).or_default().push(flow);
        }
    }
    let mut kept = Vec::new();
    for mut flows in by_id.into_values() {
        flows.sort_by_key(|one| one.ts_ns());
        for (at, flow) in flows.iter().enumerate() {
            let starts = |one: &&One| one.phase() == 's';
            let started = flows[..at].iter().any(starts);
            let goes_on = flows.get(at + 1).is_some_and(|next| !starts(next));
            if if starts(flow) { goes_on } else { started } {
                kept.push(*flow);
            }
        }
    }
    kept
}

/// The events that are shown, as texts.
pub(crate) fn naive(all: &[One], asked: &Asked, base_ns: i64) -> Vec<String> {
    let is_single = |one: &&One| !"stf".contains(one.phase());
    let is_asked_for = |one: &&One| one.process_is_asked_for(asked) && one.is_asked_for(asked);
    let mut shown: Vec<&One> = all.iter().filter(is_single).filter(is_asked_for).collect();
    shown.extend(flows(all, &shown, asked));
    let text = |one: &&One| {
        let mut value = one.value.clone();
        value["ts_ns"] = (one.ts_ns() + base_ns).into();
        if value["args"] == json!({}) {
            value.as_object_mut().unwrap().remove("args");
        }
        value.to_string()
    };
    let mut shown: Vec<String> = shown.iter().map(text).collect();
    shown.sort_unstable();
    shown
}
