//! Characters that nobody sees (issue 19, 13): marks of direction and others in names reach neither viewer nor terminal.

use crate::foreign::put;
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
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

fn pypto(name: &str, ts: usize) -> String {
    format!(
        r#"{{"name":"{name}","cat":"w","ph":"X","ts":{ts},"dur":2,"pid":7,"tid":8,"args":{{"s":"{name}"}}}}"#
    )
}

fn named(record: &str, name: &str) -> String {
    format!(r#"{{"name":"{record}","ph":"M","pid":7,"tid":8,"args":{{"x":[1],"name":"{name}"}}}}"#)
}

fn lines() -> Vec<String> {
    let spans = NAMES
        .iter()
        .zip(1..)
        .map(|((name, _), ts)| pypto(name, 10 * ts));
    let spaced = pypto(NAMES[0].0, 90).replace("\":", "\" : ");
    let names = [
        named("process_name", NAMES[1].0),
        named("thread_name", NAMES[0].0),
    ];
    spans
        .chain([spaced, pypto("plain é", 100)])
        .chain(names)
        .collect()
}

fn assert_seen(merged: &Merged) {
    let text = String::from_utf8_lossy(&merged.bytes);
    for (written, shown) in NAMES {
        let events = merged.trace.all_named(shown);
        assert!(!events.is_empty(), "{shown} in {text}");
        // What the program itself recorded beside the name is its own.
        let value: serde_json::Value = serde_json::from_str(&format!("\"{written}\"")).unwrap();
        assert_eq!(events[0]["args"]["s"], value);
    }
    assert_eq!(merged.trace.all_named("plain é").len(), 1);
    let metadata = merged.trace.phase("M");
    let given = |record: &str, name: &str| {
        let records = metadata.iter().filter(|event| event["name"] == record);
        let names: Vec<_> = records.map(|event| &event["args"]["name"]).collect();
        assert!(
            !names.is_empty() && names.iter().all(|given| *given == name),
            "{names:?}"
        );
    };
    given("process_name", NAMES[1].1);
    given("thread_name", NAMES[0].1);
    assert_eq!(merged.report.0["processes"][0]["name"], NAMES[1].1);
    assert_eq!(
        merged.report.0["repaired_by_kind"],
        json!({"repaired_name": 7})
    );
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn issue_19_names_of_other_recorders_are_seen() {
    let dir = RunDir::new();
    dir.put("7", (lines().join("\n") + "\n").as_bytes());
    for options in [&[][..], &["--sort"], &["--last", "1s"]] {
        assert_seen(&Merged::of(options, &[dir.path()]));
    }
    let path = put(
        &dir,
        "t.json",
        format!("[{}]", lines().join(",\n")).as_bytes(),
    );
    assert_seen(&Merged::of(&[], &[&path]));
}

#[test]
fn issue_19_open_spans_of_a_ring_are_seen() {
    let process = Process::new(7);
    let dir = RunDir::new();
    let mut fragment = process.fragment();
    let name = "worker\u{202e}x";
    let lines = [
        process.anchor(5_000_000_000),
        process.main_thread().span(5_000_000_000, 5, "plain", ""),
    ];
    fragment.block(0, 0, &stream(&lines));
    fragment
        .bytes
        .extend_from_slice((named("process_name", name) + "\n").as_bytes());
    fragment.write_here(&dir.fragments());
    let merged = Merged::of(&[], &[dir.path()]);
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
    for (arguments, code) in [
        (vec![missing.as_path()], 2),
        (vec![odd.as_path()], 0),
        (vec![odd.as_path(), "--report".as_ref(), "json".as_ref()], 0),
        (vec!["--check".as_ref(), missing.as_path()], 2),
        (vec!["--check".as_ref(), fragment.as_path()], 1),
    ] {
        let ended = Ended::of(trace_merge().args(&arguments));
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        let said = ended.stderr + &String::from_utf8(ended.stdout).unwrap();
        assert!(
            !said.contains(['\u{202e}', '\u{1b}', '\u{200b}']),
            "{arguments:?}: {said:?}"
        );
        assert!(
            code == 1 || said.contains("<U+202E>") || said.contains("\\u202e"),
            "{said}"
        );
    }
}
