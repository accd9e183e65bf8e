//! The report in its three forms.

use crate::invocation::{Ended, RunDir, trace_merge};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

/// A run with one event of each phase in one process, and a damaged fragment of another.
fn run() -> RunDir {
    let dir = RunDir::new();
    let process = Process {
        main: true,
        ..Process::new(80)
    };
    let on = process.main_thread();
    let mut fragment = process.fragment();
    let loss = on.loss(1_000_900, "write_error", 7, "");
    let lines = [
        on.metadata("process_name", r#""name":"api""#),
        on.span(1_000_000, 900_000, "a", ""),
        on.span(1_000_100, 5, "b", ""),
        on.instant(1_000_200, "c", ""),
        on.counter(1_000_300, "d", "\"x\":1"),
        on.flow("s", 1_000_400, "local", 1),
        on.flow("t", 1_000_500, "local", 1),
        on.flow("f", 1_000_600, "local", 1),
        on.begin(1_000_700, "e"),
        loss,
    ];
    fragment.block(1, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
    let mut other = Fragment::foreign(81);
    other.line(&Process::new(81).main_thread().span(1_000_800, 5, "f", ""));
    other.line("garbage");
    other.write_here(&dir.fragments());
    dir
}

#[test]
fn json_counts_everything() {
    let merged = run().merge();
    let report = &merged.report;
    let phases = [
        ("X", 3),
        ("i", 2),
        ("C", 1),
        ("s", 1),
        ("t", 1),
        ("f", 1),
        ("B", 1),
    ];
    for (phase, count) in phases {
        assert_eq!(report.phase(phase), count, "{phase}");
        assert_eq!(merged.trace.phase(phase).len() as u64, count, "{phase}");
    }
    let by_phase = report.0["events_by_phase"].as_object().unwrap();
    let total: u64 = by_phase.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(report.number("events_total"), total);
    assert_eq!(report.number("lost_events"), 7);
    assert_eq!(report.number("unfinished_spans"), 1);
    assert_eq!(report.number("damage_total"), 1);
    assert_eq!(report.number("base_ns"), 1_000_000);
    assert_eq!(report.0["inputs"].as_array().unwrap().len(), 2);
    let processes = report.0["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    assert!(
        processes.iter().any(|process| process["name"] == "api"),
        "{processes:?}"
    );
    assert!(
        merged.ended.stderr.is_empty() || !merged.ended.stderr.contains('{'),
        "words belong to stderr, JSON to stdout"
    );
}

#[test]
fn text_goes_to_stderr_and_names_the_damage() {
    let dir = run();
    for options in [&["--report", "text"][..], &[]] {
        let ended = Ended::of(trace_merge().args(options).arg(dir.path()));
        assert_eq!((ended.code, ended.stdout.len()), (0, 0));
        let line = ended
            .stderr
            .lines()
            .find(|line| line.contains("bad_json"))
            .unwrap_or_else(|| panic!("{}", ended.stderr));
        assert!(
            line.contains("trace.81.jsonl") || ended.stderr.contains("trace.81.jsonl"),
            "{}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("trace.json"),
            "where the trace is: {}",
            ended.stderr
        );
    }
}

#[test]
fn none_and_quiet_say_nothing() {
    let dir = run();
    for options in [&["--report", "none"][..], &["-q"]] {
        let ended = Ended::of(trace_merge().args(options).arg(dir.path()));
        assert_eq!(
            (ended.code, ended.stdout.len(), ended.stderr.as_str()),
            (0, 0, ""),
            "{options:?}"
        );
    }
}

#[test]
fn strict_fails_on_damage_and_on_losses() {
    let whole = Process::new(82);
    let event = whole.main_thread().span(1_000_000, 5, "a", "");
    let lost = whole.main_thread().loss(1_000_000, "disk_full", 1, "");
    let clamped = whole.main_thread().loss(1_000_000, "clamped", 1, "");
    let cases = [
        ("whole", event.clone(), 0),
        ("damaged", format!("{event}\ngarbage"), 1),
        ("lost", format!("{event}\n{lost}"), 1),
        ("clamped", format!("{event}\n{clamped}"), 0),
    ];
    for (what, content, code) in cases {
        let dir = RunDir::new();
        let mut fragment = whole.fragment();
        fragment.line(&content);
        fragment.write_here(&dir.fragments());
        assert_eq!(
            Ended::of(trace_merge().arg("--strict").arg(dir.path())).code,
            code,
            "{what}"
        );
        assert!(
            dir.path().join("trace.json").exists(),
            "{what}: the trace is written all the same"
        );
        assert_eq!(
            Ended::of(trace_merge().arg(dir.path())).code,
            0,
            "{what}, not strict"
        );
    }
}

#[test]
fn many_damages_are_all_counted() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(83);
    fragment.line(&Process::new(83).main_thread().span(1_000, 5, "a", ""));
    for _ in 0..5000 {
        fragment.line("garbage");
    }
    fragment.write_here(&dir.fragments());
    let report = dir.merge().report;
    assert_eq!(
        (report.number("damage_total"), report.kind("bad_json")),
        (5000, 5000)
    );
    assert!(!report.damage().is_empty());
}

#[test]
fn a_path_that_is_not_utf8_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let dir = crate::invocation::RunDir::new();
    let line = format_oracle::writer::Process::new(5)
        .main_thread()
        .span(7, 5, "a", "");
    dir.put("5", (line + "\n").as_bytes());
    let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(dir.fragments(), &odd).unwrap();
    let ended = Ended::of(trace_merge().args(["--report", "json"]).arg(&odd));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let path = ended.report().0["inputs"][0]["path"].to_string();
    assert!(path.contains("odd\u{fffd}"), "{path}");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED a_report_that_cannot_be_written_is_an_error: no /dev/full");
        return;
    };
    let dir = crate::invocation::RunDir::new();
    let line = format_oracle::writer::Process::new(5)
        .main_thread()
        .span(7, 5, "a", "");
    dir.put("5", (line + "\n").as_bytes());
    let mut command = trace_merge();
    command.args(["--report", "json"]).arg(dir.path());
    let ended = Ended::of_streams(command.stdout(full).stderr(std::process::Stdio::piped()));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("report"), "{}", ended.stderr);
}
