//! Characters that nobody sees (issue 19, 13): marks of direction and others in names reach neither viewer nor terminal.

use crate::foreign::put;
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::pypto;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::json;

/// As a file may have it: raw, and as JSON's escapes.
const NAMES: [(&str, &str); 4] = [
    ("safe\u{202e}gnp.exe", "safe<U+202E>gnp.exe"),
    (r"a\u200bb\u2066c", "a<U+200B>b<U+2066>c"),
    (r"\u001b[2Jx\n", "<U+001B>[2Jx<U+000A>"),
    ("\u{feff}té \\\"q\\\"", "<U+FEFF>té \"q\""),
];

fn span(name: &str, ts: u64) -> String {
    pypto::line(name, ts, 2, &format!(r#""s":"{name}""#))
}

fn named(record: &str, name: &str) -> String {
    format!(r#"{{"name":"{record}","ph":"M","pid":7,"tid":8,"args":{{"x":[1],"name":"{name}"}}}}"#)
}

fn lines() -> Vec<String> {
    let names = NAMES.iter().zip(1..);
    let mut lines: Vec<String> = names.map(|(name, ts)| span(name.0, 10 * ts)).collect();
    lines.push(span(NAMES[0].0, 90).replace("\":", "\" : "));
    lines.push(span("plain é", 100));
    lines.push(named("process_name", NAMES[1].0));
    lines.push(named("thread_name", NAMES[0].0));
    lines
}

fn assert_seen(merged: &Merged) {
    for (written, shown) in NAMES {
        let events = merged.trace.all_named(shown);
        assert!(!events.is_empty(), "{shown}");
        // What the program itself recorded beside the name is its own.
        let value: serde_json::Value = serde_json::from_str(&format!("\"{written}\"")).unwrap();
        assert_eq!(events[0]["args"]["s"], value);
    }
    assert_eq!(merged.trace.all_named("plain é").len(), 1);
    for (record, name) in [("process_name", NAMES[1].1), ("thread_name", NAMES[0].1)] {
        let records = merged.trace.all_named(record);
        let is_shown = records.iter().all(|record| record["args"]["name"] == name);
        assert!(is_shown && !records.is_empty(), "{records:?}");
    }
    let report = &merged.report;
    assert_eq!(report.0["processes"][0]["name"], NAMES[1].1);
    let repaired = &report.0["repaired_by_kind"];
    assert_eq!(*repaired, json!({"repaired_name": 7}));
    assert_eq!(report.number("damage_total"), 0);
}

#[test]
fn issue_19_names_of_other_recorders_are_seen() {
    let dir = RunDir::of_lines("7", &lines());
    for options in [&[][..], &["--sort"], &["--last", "1s"]] {
        assert_seen(&Merged::of(options, &[dir.path()]));
    }
    let document = format!("[{}]", lines().join(",\n"));
    let path = put(&dir, "t.json", document.as_bytes());
    assert_seen(&Merged::of(&[], &[&path]));
}

/// A line outside of the blocks of a fragment of ours.
#[test]
fn issue_19_a_name_beside_blocks_is_seen() {
    let mut fragment = Process::new(7).fragment();
    let span = Process::new(7).main_thread().span(9, 5, "plain", "");
    fragment.block(0, 0, &stream(&[span]));
    fragment.line(&named("process_name", "worker\u{202e}x"));
    let merged = RunDir::of(&fragment).merge();
    assert_eq!(merged.report.0["processes"][0]["name"], "worker<U+202E>x");
}

#[test]
fn issue_19_messages_turn_no_terminal_around() {
    let dir = RunDir::new();
    let odd = dir.path().join("od\u{202e}d\u{1b}[2J");
    std::fs::create_dir_all(odd.join("fragments")).unwrap();
    let missing = odd.join("nothing");
    let fragment = odd.join("fragments/trace.7.jsonl");
    std::fs::write(&fragment, lines().join("\n") + "\ngarbage\n").unwrap();
    for (options, path, code) in [
        (&[][..], &missing, 2),
        (&[], &odd, 0),
        (&["--report", "json"], &odd, 0),
        (&["--check"], &missing, 2),
        (&["--check"], &fragment, 1),
    ] {
        let ended = Ended::of(trace_merge().args(options).arg(path));
        assert_eq!(ended.code, code, "{options:?}: {}", ended.stderr);
        let said = ended.stderr + &String::from_utf8(ended.stdout).unwrap();
        let is_hidden = !said.contains(['\u{202e}', '\u{1b}', '\u{200b}']);
        assert!(is_hidden, "{options:?}: {said:?}");
        let is_spelled = said.contains("<U+202E>") || said.contains("\\u202e");
        assert!(code == 1 || is_spelled, "{said}");
    }
}
