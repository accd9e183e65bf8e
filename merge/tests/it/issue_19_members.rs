//! Every member of an event with every odd value, in every phase: merged, and loaded into Perfetto's own trace processor.

use crate::full::is_full;
use crate::invocation::{Ended, RunDir, trace_merge};
use crate::mutated::event::{KEYS, ODD, event, object, set};
use crate::perfetto::{ERRORS, loads, query};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
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

/// A combination in words, and its event.
type Combination = (String, String);

/// All combinations: the value in the member's place, behind the good one, and before it.
fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    let long = format!("\"{}\"", "x".repeat(10_000));
    let digits = format!("1{}", "0".repeat(400));
    let deep = "[".repeat(100) + &"]".repeat(100);
    let values: Vec<&str> = ODD.into_iter().chain([&*long, &*digits, &*deep]).collect();
    for phase in PHASES.chars() {
        for value in &values {
            let mut members = event(phase, all.len());
            set(&mut members, "tid", &(1000 + all.len()).to_string());
            let inner = format!("{{\"v\":1,\"w\":{value},\"name\":{value}}}");
            set(&mut members, "args", &inner);
            all.push((format!("{phase} in args"), object(&members, "")));
        }
        for key in KEYS {
            for value in &values {
                let short: String = value.chars().take(24).collect();
                let mut members = event(phase, all.len());
                // Each on a thread of its own, so that none is in another's way.
                set(&mut members, "tid", &(1000 + all.len()).to_string());
                let mut replaced = members.clone();
                set(&mut replaced, key, value);
                all.push((format!("{phase} {key} = {short}"), object(&replaced, "")));
                if all.len() % 7 == 0 {
                    members.insert(0, (key.to_owned(), (*value).to_owned()));
                    all.push((
                        format!("{phase} {key} = {short}, twice"),
                        object(&members, ""),
                    ));
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

fn forms(combinations: &[Combination]) -> [(&'static str, String); 2] {
    let events: Vec<&str> = combinations.iter().map(|(_, event)| &**event).collect();
    let document = format!("{{\"traceEvents\":[{}]}}", events.join(",\n"));
    [
        ("trace.900.jsonl", events.join("\n") + "\n"),
        ("other.json", document),
    ]
}

#[test]
fn issue_19_every_member_with_every_odd_value_loads() {
    let test = "issue_19_every_member_with_every_odd_value_loads";
    let all = combinations();
    assert!(all.len() > 3_700, "{}", all.len());
    for (name, text) in forms(&all) {
        let dir = RunDir::new();
        let (path, report) = merge(&dir, name, &text);
        let found = found(&path);
        assert!(found.is_empty(), "{name}: {found:?}");
        for kind in [
            "repaired_number",
            "repaired_escape",
            "repaired_time",
            "repaired_key",
            "repaired_counter",
            "repaired_arrow",
            "repaired_phase",
        ] {
            assert!(
                report["repaired_by_kind"][kind].as_u64() > Some(1),
                "{kind}: {}",
                report["repaired_by_kind"]
            );
        }
        for kind in [
            "bad_event",
            "unknown_phase",
            "no_id",
            "bad_counter",
            "bad_name",
        ] {
            assert!(
                report["damage_by_kind"][kind].as_u64() > Some(1),
                "{kind}: {}",
                report["damage_by_kind"]
            );
        }
        let told = ["events_total", "damage_total"].map(|key| report[key].as_u64().unwrap());
        assert_eq!(
            told[0] + told[1],
            all.len() as u64,
            "each is there or counted"
        );
        let Some(rows) = query(test, &path, &[ERRORS]) else {
            return;
        };
        let errors = rows[0]
            .iter()
            .filter(|row| !OF_RECORDING.contains(&row[0].as_str().unwrap()));
        assert_eq!(errors.collect::<Vec<_>>(), Vec::<&Value>::new(), "{name}");
    }
    eprintln!("{} combinations in two forms", all.len());
}

/// Some by themselves: all of them take half an hour.
#[test]
fn issue_19_each_odd_value_by_itself_loads() {
    let test = "issue_19_each_odd_value_by_itself_loads";
    let all = combinations();
    let step = if is_full() { 23 } else { 797 };
    let dir = RunDir::new();
    let mut traces = Vec::new();
    for (number, combination) in all.iter().enumerate().step_by(step) {
        let (name, text) = &forms(std::slice::from_ref(combination))[number % 2];
        let good = object(&event('X', 0), "");
        let text = match *name {
            "other.json" => text.replacen('[', &format!("[{good},"), 1),
            _ => format!("{good}\n{text}"),
        };
        let (path, _) = merge(&dir, name, &text);
        let found = found(&path);
        assert!(found.is_empty(), "{combination:?}: {found:?}");
        let kept = dir.path().join(format!("{number}.json"));
        std::fs::rename(path, &kept).unwrap();
        traces.push((combination, kept));
    }
    for traces in traces.chunks(500) {
        let paths: Vec<PathBuf> = traces.iter().map(|(_, path)| path.clone()).collect();
        let Some(loads) = loads(test, &paths) else {
            return;
        };
        for ((combination, _), loads) in traces.iter().zip(loads) {
            assert!(loads, "{combination:?}");
        }
    }
}

/// Whatever `--check` calls loadable, Perfetto loads.
#[test]
fn issue_19_what_check_calls_loadable_loads() {
    let test = "issue_19_what_check_calls_loadable_loads";
    let folder = tempfile::tempdir().unwrap();
    let good = object(&event('X', 0), "");
    let all = combinations();
    let mut traces = Vec::new();
    let step = if is_full() { 23 } else { 397 };
    for (number, (what, text)) in all.iter().enumerate().step_by(step) {
        let path = folder.path().join(format!("{number}.json"));
        std::fs::write(&path, format!("{{\"traceEvents\":[{good},{text}]}}")).unwrap();
        if check(&path).unwrap().is_loaded {
            traces.push((what, text, path));
        }
    }
    assert!(traces.len() > all.len() / step / 2);
    let mut wrong = Vec::new();
    for traces in traces.chunks(100) {
        let paths: Vec<PathBuf> = traces.iter().map(|(.., path)| path.clone()).collect();
        let Some(loads) = loads(test, &paths) else {
            return;
        };
        for ((what, text, _), loads) in traces.iter().zip(loads) {
            // Perfetto reads a number of hundreds of digits by other means.
            let is_long = text.contains(&"0".repeat(300));
            if !loads && !is_long {
                wrong.push(format!("{what}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    eprintln!(
        "{} of {} combinations loaded",
        traces.len(),
        all.len() / step
    );
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
    let (dir, process) = (RunDir::new(), Process::new(7));
    let on = process.main_thread();
    let lines = [
        on.metadata("thread_name", r#""name":5"#),
        on.metadata("thread_name", "\"name\":\"a\u{202e}b\""),
        on.span(10, 5, "n", ""),
    ];
    let mut fragment = process.fragment();
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
    let merged = dir.merge();
    assert_eq!(merged.report.kind("bad_name"), 1, "{}", merged.report.0);
    assert_eq!(
        merged.report.0["repaired_by_kind"],
        json!({"repaired_name": 1})
    );
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
        assert_eq!(
            report["repaired_by_kind"],
            json!({"repaired_key": 1}),
            "{name}"
        );
    }
}
