//! A window of a run is found without reading the rest, while its process records and after it ended: each segment says how far back what it holds began.

use crate::host;
use e2e::host_support::{full, scratch, skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use trace_merge::{EventOptions, Mode, Moment, Options, Output, Report, Window};

/// Segments of 1 MiB.
const BOUND: (&str, &str) = ("SA_PROFILE_MAX_MB", "16");
/// Spans of each of three threads in each tenth of a second: a segment lasts for 0.9 s.
const SPANS: u64 = 240;
const SECONDS: u64 = 12;

/// Thread, number, start and end in ns of the host's clock.
type Spans = BTreeSet<(String, u64, i64, i64)>;

fn merge(dir: &Path, window: Window) -> (Report, Spans) {
    let folder = scratch();
    let trace = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(trace.clone()),
        mode: Mode::Events(EventOptions {
            window,
            ..EventOptions::default()
        }),
        ..Options::new([dir.to_owned()])
    };
    let report = trace_merge::merge(&options).unwrap();
    let read: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = read["traceEvents"].as_array().unwrap().iter();
    let span = |event: &Value| {
        let args = &event["args"];
        // A window cuts a span, and says what it was.
        let ns = |key: &str| {
            let whole_us = args[format!("sa_whole_{key}")].as_f64();
            (whole_us.or(event[key].as_f64()).unwrap() * 1000.0).round() as i64
        };
        let key = (args["label"].as_str()?.to_owned(), args["index"].as_u64()?);
        let start_ns = report.clocks.base_ns + ns("ts");
        Some((key.0, key.1, start_ns, start_ns + ns("dur")))
    };
    let spans = events
        .filter(|event| event["ph"] == "X")
        .filter_map(span)
        .collect();
    (report, spans)
}

/// The part between two seconds of a run.
fn between(from_s: u64, to_s: u64, reach_s: u64) -> Window {
    let moment = |seconds| Some(Moment::FromStart(Duration::from_secs(seconds)));
    Window::Between {
        from: moment(from_s),
        to: moment(to_s),
        reach: Some(Duration::from_secs(reach_s)),
    }
}

#[test]
fn spans_that_end_a_minute_behind_a_window_are_found() {
    if !full() {
        let test = "spans_that_end_a_minute_behind_a_window_are_found";
        return skip(test, "takes a minute and a half; SA_PROFILE_FULL=1 runs it");
    }
    let dir = scratch();
    let host = host(dir.path(), &["long", "100", "880", "20", "625"]);
    let host = host.variable(BOUND.0, BOUND.1);
    let _outcome = host.deadline(Duration::from_secs(160)).run().quiet();
    let (_, whole) = merge(dir.path(), Window::WholeRun);
    let long = |spans: &Spans| {
        let mut long = spans.clone();
        long.retain(|span| span.3 - span.2 > 60_000_000_000);
        long
    };
    assert_eq!(long(&whole).len(), 3);
    let reached = |reach_s| merge(dir.path(), between(4, 5, reach_s));
    let (report, found) = reached(3_600);
    assert_eq!(long(&found), long(&whole));
    let window = report.window.unwrap();
    assert_eq!(window.reach_ns, None, "nothing can be missed");
    assert!(window.bytes_left_out > 1 << 20, "{window:?}");
    let (report, found) = reached(10);
    assert_eq!(long(&found).len(), 0);
    assert_eq!(report.window.unwrap().reach_ns, Some(10_000_000_000));
}

/// A segment: its header's `open_ns`, and name, label and start in ns of its spans.
type Segment = (Option<u64>, Vec<(String, String, u64)>);

/// Reads the segments of the only fragment in a directory, in their order.
fn segments(dir: &Path) -> Vec<Segment> {
    let files = fs::read_dir(dir.join("fragments")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let texts = paths.filter(|path| path.extension() == Some("jsonl".as_ref()));
    let mut segments: Vec<(u64, Segment)> = texts
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().filter(|line| !line.is_empty());
            let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
            let header = lines.next().unwrap()["args"].take();
            let span = |line: Value| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let start_ns = (line["ts"].as_f64()? * 1000.0).round() as i64;
                let names = (text(&line["name"]), text(&line["args"]["label"]));
                Some((names.0, names.1, start_ns.unsigned_abs()))
            };
            let segment = (header["open_ns"].as_u64(), lines.filter_map(span).collect());
            (header["segment"].as_u64().unwrap(), segment)
        })
        .collect();
    segments.sort_by_key(|(number, _)| *number);
    segments.into_iter().map(|(_, segment)| segment).collect()
}

/// A thread may have taken the time of an event just before a segment begins, and wait for the processor.
const WAITING_NS: u64 = 1_000_000_000;

#[test]
fn no_line_begins_before_the_open_ns_of_its_segment() {
    let dir = scratch();
    // Each segment lasts for less than a second.
    let host = host(dir.path(), &["long", "1000", "45", "4", "42"]);
    let _outcome = host.variable(BOUND.0, BOUND.1).run().quiet();
    let segments = segments(dir.path());
    assert!(segments.len() >= 3, "{}", segments.len());
    let mut long = 0;
    for (number, (open_ns, _)) in segments.iter().enumerate().skip(1) {
        let open_ns = open_ns.expect("a segment whose recorder knows what is open");
        for (name, label, start_ns) in segments[number..].iter().flat_map(|(_, spans)| spans) {
            // What is told only afterwards is in `late_ns`.
            if label == "told" {
                continue;
            }
            assert!(
                start_ns + WAITING_NS >= open_ns,
                "segment {number}: {open_ns}, and {name} {label} at {start_ns}"
            );
            long += u64::from(name == "long");
        }
    }
    assert!(long >= 4, "{long} long spans cross segments");
}

/// Bytes of the fragments of a run.
fn written(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("fragments"))
        .unwrap()
        .map(Result::unwrap);
    let fragments = files.filter(|file| file.path().extension() == Some("jsonl".as_ref()));
    fragments.map(|file| file.metadata().unwrap().len()).sum()
}

/// A run, and what was found of its third second while it recorded: another run where the machine stood still until there was nothing left to record.
fn looked_at() -> (TempDir, (Report, Spans)) {
    for _ in 0..3 {
        let dir = scratch();
        let ticks = (10 * SECONDS).to_string();
        let host = host(dir.path(), &["paced", "3", &SPANS.to_string(), &ticks]);
        let host = host.variable(BOUND.0, BOUND.1).start();
        sleep(Duration::from_millis(6_500));
        let live = merge(dir.path(), between(2, 3, 1));
        let seen = written(dir.path());
        let _outcome = host.end().quiet();
        if written(dir.path()) > seen + 100_000 {
            return (dir, live);
        }
    }
    panic!("no run was still recording after 6.5 s");
}

#[test]
fn a_window_of_a_run_is_found_without_reading_the_rest() {
    let (dir, (live_report, live)) = looked_at();
    assert_eq!(live_report.damage.total, 0, "{live_report:?}");
    let (whole_report, whole) = merge(dir.path(), Window::WholeRun);
    assert_eq!(whole.len() as u64, 3 * SPANS * 10 * SECONDS);
    for (from_s, to_s) in [(2, 3), (4, 5), (0, 1), (6, 7)] {
        let (report, found) = merge(dir.path(), between(from_s, to_s, 1));
        let second = |seconds: u64| whole_report.clocks.base_ns + seconds as i64 * 1_000_000_000;
        let mut expected = whole.clone();
        expected.retain(|span| span.2 <= second(to_s) && span.3 >= second(from_s));
        assert_eq!(found, expected, "{from_s} s to {to_s} s");
        assert_eq!(report.damage.total, 0, "{report:?}");
        let names: Vec<_> = report
            .processes
            .iter()
            .map(|process| &process.name)
            .collect();
        assert_eq!(names, [&whole_report.processes[0].name]);
        if from_s == 2 {
            assert_eq!(live, expected, "while it recorded");
            let unread = [live_report.window.as_ref(), report.window.as_ref()];
            let unread = unread.map(|window| window.unwrap().bytes_left_out);
            assert!(unread[0] > 1 << 20 && unread[1] > unread[0], "{unread:?}");
        }
    }
}
