//! Events, and the rules that they break: a table.

use super::{Counts, changed};
use serde_json::{Value, json};

/// How often each rule is broken, and the events: a phase each, and the members that are unlike [`plain`]; null takes one away.
const LOSSES: &str = r#"
negative_time 1 | X {} | X {"ts":-5}
no_time 1 | X {} | X {"ts":null}
no_time 1 | X {} | X {"dur":null}
bad_phase 1 | X {} | X {"ph":null}
bad_phase 1 | X {} | X {"ph":"Q"}
overlap 1 | X {} | X {"ts":50} | X {"ts":60,"dur":45} | X {"ts":120}
misplaced_end 1, end_without_begin 1 | X {} | B {"ts":20} | E {"ts":120,"name":null} | E {"ts":130,"name":null}
flow_twice 1 | X {} | s {"ts":11,"id":1} | s {"ts":12,"id":1} | f {"ts":13,"id":1}
flow_without_span 1 | X {} | s {"ts":12,"id":5} | f {"ts":13,"id":5,"tid":2}
bad_id 2 | X {} | s {"ts":12,"id":"zz"} | s {"ts":13,"id":1.5}
bad_id 2 | X {} | s {"ts":14} | s {"ts":15,"id2":{"global":"0x1"}}
bad_thread 1 | X {} | X {"tid":140737488355328}
bad_thread 2 | C {"pid":1099511627776} | b {"pid":-1,"ts":3,"id":9}
| s {"ts":20,"id":"0xff"} | X {} | f {"ts":30,"id":"ff"} | f {"ts":30,"id":255}

What ends at a time does so before what begins then.
| X {"ts":20,"dur":5} | B {"ts":10,"name":"b"} | E {"ts":20,"name":"b"}

An end is of the same category, if it has one.
end_without_begin 1 | B {"ts":10,"cat":"x"} | E {"ts":20,"cat":"y"} | E {"ts":30}

Ends of nothing, of another id, of another category, of another name.
end_without_begin 1 | e {"ts":2,"id":1} | b {"ts":3,"id":1}
end_without_begin 1 | b {"ts":3,"id":1} | e {"ts":4,"id":"1"}
end_without_begin 1 | b {"ts":3,"id":1} | e {"ts":5,"cat":null,"id":1}
end_without_begin 1 | b {"ts":3,"id":1} | e {"ts":6,"name":"r","id":1}
misplaced_end 1, end_without_begin 1 | b {"ts":3,"id":1} | b {"ts":4,"name":"r","id":1} | e {"ts":5,"id":1} | e {"ts":6,"name":"r","id":1}

No time passes between these.
| X {} | b {"ts":3,"id":1} | e {"ts":3,"id":1}

The id of a process, and one of all.
end_without_begin 1 | b {"ts":3,"id2":{"local":1}} | e {"pid":2,"ts":5,"id2":{"local":1}}
| b {"ts":3,"id2":{"global":2}} | e {"pid":2,"ts":5,"id":2}
bad_id 1, end_without_begin 1 | b {"ts":3} | e {"ts":5,"id2":{"local":1}}

These lie on their process, whatever thread they name.
| X {} | C {"tid":0} | C {"tid":140737488355328} | b {"tid":0,"ts":3,"id":8} | e {"tid":-1,"ts":5,"id":8}
| X {} | i {"tid":0,"s":"p"} | i {"tid":0,"s":"g"}
"#;

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
