//! Escapes that JSON allows and Perfetto does not read. It refuses a file for a character beyond U+FFFF in two escapes, as Python's `json.dumps` writes
//! it, beside an escaped quote, and for a text that ends with a backslash.

use crate::invocation::{Merged, RunDir};
use crate::perfetto::{loads, query, query_bytes};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::json;
use std::path::Path;
use trace_merge::check::{Rule, check};

const THOUGHT: &str = r#"say \"\ud83e\udd14\""#;
const SAID: &str = "say \"\u{1f914}\"";

/// A name of a thread, a span, and a counter, as Python writes them.
fn lines() -> [String; 3] {
    let text = THOUGHT;
    [
        format!(r#"{{"name":"thread_name","ph":"M","pid":7,"tid":8,"args":{{"name":"{text}"}}}}"#),
        format!(
            r#"{{"name":"{text}","cat":"w","ph":"X","ts":10,"dur":2,"pid":7,"tid":8,"args":{{"{text}":"{text}","half":"\ud83e"}}}}"#
        ),
        format!(r#"{{"name":"c","ph":"C","ts":11,"pid":7,"tid":8,"args":{{"{text}":1}}}}"#),
    ]
}

fn assert_whole(merged: &Merged) {
    let span = merged.trace.named(SAID);
    assert_eq!(span["args"], json!({SAID: SAID, "half": "\u{fffd}"}));
    assert_eq!(merged.trace.named("c")["args"], json!({SAID: 1}));
    let repaired = &merged.report.0["repaired_by_kind"];
    assert_eq!(*repaired, json!({"repaired_escape": 3}));
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn issue_19_halves_are_whole_characters_in_the_trace() {
    let test = "issue_19_halves_are_whole_characters_in_the_trace";
    let dir = RunDir::of_lines("7", &lines());
    for options in [&[][..], &["--sort"], &["--last", "1s"], &["--verbatim"]] {
        assert_whole(&Merged::of(options, &[dir.path()]));
    }
    let spaced = RunDir::new();
    spaced.put(
        "7",
        &stream(&lines().map(|line| line.replace("\":", "\": "))),
    );
    assert_whole(&Merged::of(&[], &[spaced.path()]));
    let document = dir.path().join("other.json");
    std::fs::write(&document, format!("[{}]", lines().join(","))).unwrap();
    assert_whole(&Merged::of(&[], &[&document]));
    let names = "select name from slice union all select name from thread where tid=8";
    if let Some(rows) = query_bytes(test, &dir.merge().bytes, &[names]) {
        assert_eq!(rows[0], [json!([SAID]), json!([SAID])]);
    }
}

/// Counts the bad escapes that `--check` finds in a document of one event. The second value is true if the document loads.
fn checked(folder: &Path, event: &str) -> (u64, bool) {
    let path = folder.join("one.json");
    std::fs::write(&path, format!("{{\"traceEvents\":[{event}]}}")).unwrap();
    let checked = check(&path).unwrap();
    (checked.count(Rule::BadEscape), checked.is_loaded)
}

#[test]
fn issue_19_check_knows_halves_that_keep_a_file_from_loading() {
    let test = "issue_19_check_knows_halves_that_keep_a_file_from_loading";
    let folder = tempfile::tempdir().unwrap();
    let both = r#""a\ud83e\udd14\"""#;
    let texts = [
        (format!(r#""name":{both}"#), false),
        (format!(r#""name":"n","other":{both}"#), false),
        (format!(r#""name":"n",{both}:1"#), false),
        (format!(r#""name":"n","args":{{"a":{both}}}"#), true),
        (r#""name":"a\ud83e\udd14","cat":"\"""#.to_owned(), true),
    ];
    let mut files = Vec::new();
    for (number, (text, is_loaded)) in texts.iter().enumerate() {
        let event = format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,{text}}}"#);
        let found = checked(folder.path(), &event);
        assert_eq!(found, (u64::from(!is_loaded), *is_loaded), "{text}");
        let path = folder.path().join(format!("{number}.json"));
        std::fs::rename(folder.path().join("one.json"), &path).unwrap();
        files.push(path);
    }
    // What never ends loading cannot be asked.
    for event in lines().iter().chain(&paths()) {
        assert_eq!(checked(folder.path(), event), (1, false), "{event}");
    }
    if let Some(loads) = loads(test, &files) {
        assert_eq!(loads, texts.map(|(_, is_loaded)| is_loaded));
    }
}

/// A name of a thread, spans, an async one and a counter, with paths of Windows.
fn paths() -> [String; 5] {
    let text = r"C:\\";
    let on = r#""pid":7,"tid":8"#;
    [
        format!(r#"{{"name":"thread_name","ph":"M",{on},"args":{{"name":"{text}"}}}}"#),
        format!(
            r#"{{"name":"{text}","cat":"{text}","ph":"X","ts":10,"dur":2,{on},"args":{{"{text}":["{text}"]}}}}"#
        ),
        format!(r#"{{"name":"a","cat":"c","ph":"b","ts":10,{on},"id":"{text}","scope":"{text}"}}"#),
        format!(r#"{{"name":"a","cat":"c","ph":"e","ts":11,{on},"id":"{text}","scope":"{text}"}}"#),
        format!(r#"{{"name":"c","ph":"C","ts":11,{on},"args":{{"{text}":1}}}}"#),
    ]
}

#[test]
fn issue_19_texts_may_end_with_a_backslash() {
    let test = "issue_19_texts_may_end_with_a_backslash";
    let dir = RunDir::of_lines("7", &paths());
    let document = dir.path().join("other.json");
    std::fs::write(&document, format!("[{}]", paths().join(","))).unwrap();
    for path in [dir.path(), &document] {
        let merged = Merged::of(&[], &[path]);
        let span = merged.trace.named("C:\\");
        assert_eq!(span["args"], json!({"C:\\": ["C:\\"]}));
        let repaired = &merged.report.0["repaired_by_kind"];
        assert_eq!(repaired["repaired_escape"], 5, "{repaired}");
        let out = dir.path().join("merged.json");
        std::fs::write(&out, merged.bytes).unwrap();
        assert_eq!(check(&out).unwrap().count(Rule::BadEscape), 0);
        if let Some(rows) = query(test, &out, &["select count(*) from slice"]) {
            assert_eq!(rows[0], [json!([2])], "{path:?}");
        }
    }
}

/// The recorder writes its last backslash so, for what it has signed is copied.
#[test]
fn issue_19_a_name_of_the_merge_may_end_with_a_backslash() {
    let process = Process::new(7);
    let on = process.main_thread();
    let lines = [
        on.metadata("process_name", r#""name":"C:\u005c""#),
        on.metadata("thread_name", r#""name":"C:\\""#),
        on.span(10, 5, "n", ""),
    ];
    let merged = RunDir::of_block(&process, &lines).merge();
    let text = String::from_utf8(merged.bytes).unwrap();
    assert!(!text.contains(r#"\\""#), "{text}");
}
