//! Every member of an event with every odd value, in every phase: merged, and loaded into Perfetto's own trace processor.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::mutated::event::{KEYS, ODD, event, object, set};
use crate::perfetto::{ERRORS, loads, query};
use format_oracle::writer::Process;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trace_merge::check::{Rule, check};

/// The phases, one event of each.
const PHASES: &str = "XBEiIRCstfbneMScP";

/// Errors that come of what is not recorded: ends whose begin is missing, and of arrows on threads without a span.
const OF_RECORDING: [&str; 4] = [
    "flow_no_enclosing_slice",
    "flow_duplicate_id",
    "flow_end_without_start",
    "flow_step_without_start",
];

/// Kinds of repair and damage that odd values cause.
const REPAIRED: &str = "repaired_number repaired_escape repaired_time repaired_key repaired_counter \
    repaired_arrow repaired_phase";
const DAMAGED: &str = "bad_event unknown_phase no_id bad_counter bad_name";

/// All combinations: the value in the member's place, behind the good one, and before it.
fn combinations() -> Vec<String> {
    let mut all = Vec::new();
    let long = format!("\"{}\"", "x".repeat(10_000));
    let digits = format!("1{}", "0".repeat(400));
    let deep = "[".repeat(100) + &"]".repeat(100);
    let values: Vec<&str> = ODD.split(' ').chain([&*long, &*digits, &*deep]).collect();
    for phase in PHASES.chars() {
        // Each on a thread of its own, so that none is in another's way.
        let members = |number: usize| {
            let mut members = event(phase, number);
            set(&mut members, "tid", &(1000 + number).to_string());
            members
        };
        for value in &values {
            let mut members = members(all.len());
            let inner = format!("{{\"v\":1,\"w\":{value},\"name\":{value}}}");
            set(&mut members, "args", &inner);
            all.push(object(&members, ""));
        }
        for key in KEYS.split(' ') {
            for value in &values {
                let mut members = members(all.len());
                let mut replaced = members.clone();
                set(&mut replaced, key, value);
                all.push(object(&replaced, ""));
                if all.len() % 7 == 0 {
                    members.insert(0, (key.to_owned(), (*value).to_owned()));
                    all.push(object(&members, ""));
                }
            }
        }
    }
    all
}

/// Merges lines of another recorder, or a document of another profiler.
fn merge(dir: &RunDir, name: &str, text: &str) -> (PathBuf, Value) {
    let (input, output) = (dir.path().join(name), dir.path().join("out.json"));
    std::fs::write(&input, text).unwrap();
    let mut command = trace_merge();
    command.args(["--report", "json", "-o"]).arg(&output);
    let ended = Ended::of(command.arg(&input));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    (output, ended.report().0)
}

/// What `--check` finds that a merge must not write.
fn found(path: &Path) -> Vec<(String, Value)> {
    let report = check(path).unwrap();
    let findings = report.findings.into_iter();
    findings
        .filter(|finding| !finding.rule.is_of_recording())
        .map(|finding| (finding.rule.name().to_owned(), json!(finding.places)))
        .collect()
}

#[test]
fn issue_19_every_member_with_every_odd_value_loads() {
    let test = "issue_19_every_member_with_every_odd_value_loads";
    let all = combinations();
    assert!(all.len() > 3_700, "{}", all.len());
    let document = format!("{{\"traceEvents\":[{}]}}", all.join(",\n"));
    let lines = all.join("\n") + "\n";
    for (name, text) in [("trace.900.jsonl", lines), ("other.json", document)] {
        let dir = RunDir::new();
        let (path, report) = merge(&dir, name, &text);
        let found = found(&path);
        assert!(found.is_empty(), "{name}: {found:?}");
        for (found, kinds) in [("repaired_by_kind", REPAIRED), ("damage_by_kind", DAMAGED)] {
            let is_found = |kind: &str| report[found][kind].as_u64() > Some(1);
            assert!(kinds.split(' ').all(is_found), "{}", report[found]);
        }
        let told = ["events_total", "damage_total"].map(|key| report[key].as_u64().unwrap());
        let all = all.len() as u64;
        assert_eq!(told[0] + told[1], all, "each is there or counted");
        let Some(rows) = query(test, &path, &[ERRORS]) else {
            return;
        };
        let is_of_recording = |row: &&Value| OF_RECORDING.contains(&row[0].as_str().unwrap());
        assert_eq!(rows[0].iter().find(|row| !is_of_recording(row)), None);
    }
}

/// Of an event without a phase, too, Perfetto reads numbers and times.
#[test]
fn issue_19_check_knows_what_does_not_load_without_a_phase() {
    let test = "issue_19_check_knows_what_does_not_load_without_a_phase";
    let folder = tempfile::tempdir().unwrap();
    let good = object(&event('X', 0), "");
    let texts = [
        (r#"{"pid":1,"tid":1,"ts":1}"#, true),
        (r#"{"ph":1e999,"pid":1,"tid":1,"ts":1}"#, false),
        (r#"{"pid":1,"tid":1,"ts":1,"other":1e999}"#, false),
        (r#"{"ph":null,"pid":1,"tid":1,"ts":"x"}"#, false),
        (r#"{"ph":"zz","pid":1,"tid":1,"ts":1,"dur":null}"#, false),
        (r#"{"pid":1,"tid":1,"ts":1,"tts":[1]}"#, false),
    ];
    let mut paths = Vec::new();
    for (number, (text, is_loaded)) in texts.iter().enumerate() {
        let path = folder.path().join(format!("{number}.json"));
        std::fs::write(&path, format!("{{\"traceEvents\":[{good},{text}]}}")).unwrap();
        assert_eq!(check(&path).unwrap().is_loaded, *is_loaded, "{text}");
        paths.push(path);
    }
    if let Some(loads) = loads(test, &paths) {
        assert_eq!(loads, texts.map(|(_, is_loaded)| is_loaded));
    }
}

/// A program may record what it likes as the name of a thread, also in a block with its checksum.
#[test]
fn issue_19_names_in_blocks_are_looked_at() {
    let process = Process::new(7);
    let on = process.main_thread();
    let lines = [
        on.metadata("thread_name", r#""name":5"#),
        on.metadata("thread_name", "\"name\":\"a\u{202e}b\""),
        on.span(10, 5, "n", ""),
    ];
    let dir = RunDir::of_block(&process, &lines);
    let merged = dir.merge();
    assert_eq!(merged.report.kind("bad_name"), 1, "{}", merged.report.0);
    let repaired = &merged.report.0["repaired_by_kind"];
    assert_eq!(*repaired, json!({"repaired_name": 1}));
    let path = dir.path().join("merged.json");
    std::fs::write(&path, merged.bytes).unwrap();
    assert_eq!(found(&path), []);
}

/// A pid twice, as a text and as a number: found, and never written.
#[test]
fn issue_19_a_pid_that_is_also_a_text_is_not_written() {
    let good = object(&event('X', 0), "");
    let mut members = event('X', 1);
    members.insert(0, ("pid".to_owned(), "\"text\"".to_owned()));
    let twice = object(&members, "");
    let dir = RunDir::new();
    let raw = dir.path().join("raw.json");
    std::fs::write(&raw, format!("[{good},{twice}]")).unwrap();
    let checked = check(&raw).unwrap();
    assert!(checked.count(Rule::PidTwice) == 1 && !checked.is_loaded);
    let lines = format!("{good}\n{twice}\n");
    let document = format!("[{good},{twice}]");
    for (name, text) in [("trace.900.jsonl", lines), ("other.json", document)] {
        let (path, report) = merge(&dir, name, &text);
        assert_eq!(found(&path), [], "{name}");
        let repaired = json!({"repaired_key": 1});
        assert_eq!(report["repaired_by_kind"], repaired, "{name}");
    }
}
