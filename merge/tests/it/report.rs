//! The report in its three forms.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::links::run_of;
use crate::usage::merges;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Damaged lines of a run: more than are listed.
const DAMAGED: usize = 5_000;

/// A run with one event of each phase in one process, and a damaged fragment of another.
fn run() -> RunDir {
    let process = Process {
        main: true,
        ..Process::new(80)
    };
    let on = process.main_thread();
    let lines = vec![
        on.metadata("process_name", r#""name":"api""#),
        on.span(1_000_000, 900_000, "a", ""),
        on.span(1_000_100, 5, "b", ""),
        on.instant(1_000_200, "c", ""),
        on.counter(1_000_300, "d", "\"x\":1"),
        on.flow("s", 1_000_400, "local", 1),
        on.flow("t", 1_000_500, "local", 1),
        on.flow("f", 1_000_600, "local", 1),
        on.begin(1_000_700, "e"),
        on.loss(1_000_900, "write_error", 7, ""),
    ];
    let dir = run_of(&[(process, lines)]);
    let other = Process::new(81).main_thread().span(1_000_800, 5, "f", "");
    let garbage = "garbage\n".repeat(DAMAGED);
    dir.put("81", format!("{other}\n{garbage}").as_bytes());
    dir
}

#[test]
fn json_counts_everything() {
    let merged = run().merge();
    let report = &merged.report;
    for phase in ["X", "i", "C", "s", "t", "f", "B"] {
        let count = "XXXiiCstfB".matches(phase).count() as u64;
        assert_eq!(report.phase(phase), count, "{phase}");
        assert_eq!(merged.trace.phase(phase).len() as u64, count, "{phase}");
    }
    let by_phase = report.0["events_by_phase"].as_object().unwrap();
    let total: u64 = by_phase.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(report.number("events_total"), total);
    assert_eq!(report.number("lost_events"), 7);
    assert_eq!(report.number("unfinished_spans"), 1);
    let damaged = (report.number("damage_total"), report.kind("bad_json"));
    assert_eq!(damaged, (DAMAGED as u64, DAMAGED as u64));
    assert!(!report.damage().is_empty());
    assert_eq!(report.number("base_ns"), 1_000_000);
    assert_eq!(report.0["inputs"].as_array().unwrap().len(), 2);
    let processes = report.0["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    let mut names = processes.iter().map(|process| &process["name"]);
    assert!(names.any(|name| name == "api"), "{processes:?}");
    assert_eq!(merged.ended.stderr, "");
}

#[test]
fn text_goes_to_stderr_and_names_the_damage() {
    let dir = run();
    for options in [&["--report", "text"][..], &[]] {
        let ended = merges(trace_merge().args(options).arg(dir.path()));
        assert!(ended.stdout.is_empty());
        for word in ["bad_json", "trace.81.jsonl", "trace.json"] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        }
    }
    for options in [&["--report", "none"][..], &["-q"]] {
        let ended = merges(trace_merge().args(options).arg(dir.path()));
        assert!(ended.stdout.is_empty() && ended.stderr.is_empty());
    }
}

#[test]
fn strict_fails_on_damage_and_on_losses() {
    let whole = Process::new(82);
    let on = whole.main_thread();
    let event = on.span(1_000_000, 5, "a", "");
    for (what, line, code) in [
        ("whole", "", 0),
        ("damaged", "garbage", 1),
        ("lost", &on.loss(1_000_000, "disk_full", 1, ""), 1),
        ("clamped", &on.loss(1_000_000, "clamped", 1, ""), 0),
    ] {
        let dir = RunDir::new();
        let mut fragment = whole.fragment();
        fragment.raw(&stream(&[&event, line]));
        fragment.write_here(&dir.fragments());
        let ended = Ended::of(trace_merge().arg("--strict").arg(dir.path()));
        assert_eq!(ended.code, code, "{what}");
        assert!(dir.path().join("trace.json").exists(), "{what}");
        merges(trace_merge().arg(dir.path()));
    }
}

#[test]
fn a_path_that_is_not_utf8_is_reported() {
    let dir = run();
    let odd = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(dir.fragments(), &odd).unwrap();
    let ended = merges(trace_merge().args(["--report", "json"]).arg(&odd));
    let path = ended.report().0["inputs"][0]["path"].to_string();
    assert!(path.contains("odd\u{fffd}"), "{path}");
}
