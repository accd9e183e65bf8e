//! Events, and the rules that they break: a table.

use super::{Counts, changed};
use serde_json::{Value, json};

/// Count of each broken rule, and the events: a phase for each, and the members that differ from
/// [`plain`]. Null removes a member.
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

/// Returns events and the count of each rule that they break. All are in process 1 and its thread
/// 1, and their flows have small ids.
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
