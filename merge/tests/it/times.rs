//! Times: one base for all, exact to the nanosecond, three decimals.

use crate::invocation::RunDir;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

/// Merges foreign spans with these texts as ts; the numbers of the output as written.
fn times(texts: &[&str]) -> Vec<String> {
    let dir = RunDir::new();
    let line = |ts: &&str| format!(r#"{{"ph":"X","pid":5,"tid":5,"ts":{ts},"dur":1,"name":"a"}}"#);
    let lines: Vec<String> = texts.iter().map(line).collect();
    dir.put("5", &stream(&lines));
    let output = dir.path().join("t.json");
    let ended = crate::invocation::Ended::of(
        crate::invocation::trace_merge()
            .arg(dir.path())
            .args(["--report", "none", "-o"])
            .arg(&output),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = std::fs::read_to_string(&output).unwrap();
    let starts = text.split("\"ts\":").skip(1);
    starts
        .map(|rest| rest[..rest.find([',', '}']).unwrap()].trim().to_owned())
        .collect()
}

#[test]
fn every_spelling_of_a_number_is_read() {
    let spellings = [
        "1000",
        "1000.0",
        "1e3",
        "1.000e+3",
        "10000e-1",
        "1500.25",
        "1500.125",
        "\"2000.5\"",
    ];
    assert_eq!(
        times(&spellings),
        [
            "0.000", "0.000", "0.000", "0.000", "0.000", "500.250", "500.125", "1000.500"
        ]
    );
}

#[test]
fn epoch_microseconds_keep_their_nanoseconds() {
    let spellings = [
        "1763689523000050.074",
        "1763689523000060.333",
        "1763689523000060.334",
    ];
    assert_eq!(times(&spellings), ["0.000", "10.259", "10.260"]);
}

#[test]
fn negative_times_are_lifted_to_the_base() {
    assert_eq!(times(&["-5.5", "0", "2"]), ["0.000", "5.500", "7.500"]);
}

#[test]
fn durations_below_a_microsecond_stay_exact() {
    let dir = RunDir::new();
    let process = Process::new(5);
    let mut fragment = process.fragment();
    fragment.block(
        1,
        0,
        &stream(&[
            process.main_thread().span(1_000_001, 1, "a", ""),
            process
                .main_thread()
                .span(1_000_003, 4_503_599_627_370_497, "b", ""),
        ]),
    );
    fragment.write_here(&dir.fragments());
    let output = dir.path().join("t.json");
    let ended = crate::invocation::Ended::of(
        crate::invocation::trace_merge()
            .arg(dir.path())
            .args(["-q", "--keep-times", "-o"]) // 52 days
            .arg(&output),
    );
    assert_eq!(ended.code, 0);
    let text = std::fs::read_to_string(&output).unwrap();
    assert!(
        text.contains(r#""ts":0.000,"dur":0.001"#)
            && text.contains(r#""ts":0.002,"dur":4503599627370.497"#),
        "{text}"
    );
}

#[test]
fn time_namespace_offsets_are_subtracted() {
    let dir = RunDir::new();
    let inside = Process {
        offset_ns: 5_000_000_123,
        ..Process::new(6)
    };
    for (process, ts_ns) in [(Process::new(5), 1_000_000), (inside, 5_002_000_123)] {
        let mut fragment = process.fragment();
        fragment.block(
            1,
            0,
            &stream(&[process
                .main_thread()
                .span(ts_ns, 5, &format!("p{}", process.pid), "")]),
        );
        fragment.write_here(&dir.fragments());
    }
    let merged = dir.merge();
    assert_eq!(merged.trace.named("p5")["ts"], 0.0);
    assert_eq!(merged.trace.named("p6")["ts"], 1000.0);
    assert_eq!(merged.report.number("base_ns"), 1_000_000);
}

#[test]
fn unfinished_spans_count_for_the_base() {
    let dir = RunDir::new();
    let process = Process::with_ring(5);
    let mut fragment = process.fragment();
    fragment.block(
        1,
        0,
        &stream(&[process.main_thread().span(9_000, 5, "a", "")]),
    );
    fragment.write_here(&dir.fragments());
    let mut ring = format_oracle::writer::Ring::of(&process);
    ring.slots = vec![format_oracle::writer::Slot {
        tid: 5,
        open: vec![format_oracle::writer::Open::named(4_000, "open")],
        ..Default::default()
    }];
    ring.write_here(&dir.fragments());
    let merged = dir.merge();
    assert_eq!(merged.report.number("base_ns"), 4_000);
    assert_eq!(
        (
            &merged.trace.named("open")["ts"],
            &merged.trace.named("a")["ts"]
        ),
        (&0.0.into(), &5.0.into())
    );
}

#[test]
fn the_base_stands_in_the_trace() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(5);
    fragment.line(&Process::new(5).main_thread().span(123_456_789, 5, "a", ""));
    fragment.write_here(&dir.fragments());
    let merged = dir.merge();
    assert!(
        merged.trace.document["otherData"]
            .to_string()
            .contains("123456789"),
        "{}",
        merged.trace.document["otherData"]
    );
}
