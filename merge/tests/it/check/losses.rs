//! Events, and the rules that they break: a table.

use super::{Counts, changed};
use serde_json::{Value, json};

/// How often each rule is broken, and the events: a phase each, and the members that are unlike [`plain`]; null takes one away.
const LOSSES: &str = include_str!("losses.txt");

fn plain(phase: &str) -> Value {
    let members = match phase {
        "X" => json!({"tid": 1, "ts": 10, "dur": 100, "name": "a", "cat": "c"}),
        "B" | "E" => json!({"tid": 1, "name": "b"}),
        "s" | "f" => json!({"tid": 1, "name": "f", "cat": "c", "bp": "e"}),
        "b" | "e" => json!({"name": "q", "cat": "c"}),
        _ => json!({"ts": 5, "name": "q", "args": {"a": 1}}),
    };
    changed(json!({"ph": phase, "pid": 1}), members)
}

/// Returns events, and how often each rule is broken by them. All are in process 1 and its thread 1, and their arrows have small ids.
pub(super) fn losses() -> Vec<(Vec<Value>, Counts)> {
    let event = |text: &str| {
        let (phase, changes) = text.trim().split_once(' ').unwrap();
        changed(plain(phase), serde_json::from_str(changes).unwrap())
    };
    let count = |text: &str| {
        let (rule, count) = text.trim().split_once(' ')?;
        Some((rule.to_owned(), count.parse().unwrap()))
    };
    let lines = LOSSES.lines().filter_map(|line| line.split_once('|'));
    let case = |(rules, events): (&str, &str)| {
        let events = events.split(" | ").map(event).collect();
        (events, rules.split(',').filter_map(count).collect())
    };
    lines.map(case).collect()
}
