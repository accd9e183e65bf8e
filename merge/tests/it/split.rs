//! `--split`: parts of a trace, compared with a naive filter of the whole one.

use crate::full::cases;
use crate::invocation::{Merged, Report, RunDir, trace_merge};
use crate::output::{names, run};
use crate::perfetto::assert_no_errors;
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::{Trace, ns, whole};
use crate::usage::merges;
use crate::window::{end_ns, sorted, write_long};
use format_oracle::writer::Fragment;
use format_oracle::writer::line::micros;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

const CASES: u64 = 100;

/// A part as it was written.
pub(crate) struct Part {
    pub(crate) trace: Trace,
    pub(crate) bytes: Vec<u8>,
}

impl Part {
    fn data(&self) -> &Value {
        &self.trace.document["otherData"]["part"]
    }

    /// Returns its begin and end in ns from the base.
    fn edges(&self) -> (i64, i64) {
        let from = self.data()["from_ns"].as_i64().unwrap();
        (from, self.data()["to_ns"].as_i64().unwrap_or(i64::MAX))
    }
}

/// Splits a run and reads the parts. There must be no other files.
pub(crate) fn split(run: &Path, options: &[&str], size: &str) -> (Vec<Part>, Report) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = trace_merge();
    command.args(["--no-settle", "--report", "json", "--split", size]);
    command.args(options).arg("-o");
    let output = folder.path().join("out.json");
    let report = merges(command.arg(output).arg(run)).report();
    let parts = report.0["parts"].as_array().unwrap().iter();
    let paths = parts.map(|part| Path::new(part["path"].as_str().unwrap()));
    let names = names(folder.path());
    assert!(paths.eq(names.iter().map(|name| folder.path().join(name))));
    let read = |name: &String| {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        Part {
            trace: Trace::parse(&bytes),
            bytes,
        }
    };
    (names.iter().map(read).collect(), report)
}

/// An event of the whole trace, and the period in which it is shown.
struct KnownEvent {
    text: String,
    from_ns: i64,
    to_ns: i64,
    is_span: bool,
    is_cut: bool,
}

/// Returns the events of the whole trace. Begins and ends are shown for the whole period of their
/// span.
fn known_events(whole: &Merged) -> Vec<KnownEvent> {
    let mut known = Vec::new();
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for event in whole.trace.shown() {
        let at_ns = ns(&event["ts"]);
        let unfinished = event["args"]["unfinished"] == true;
        let (text, is_cut) = comparable(event);
        let mut this = KnownEvent {
            text,
            is_cut,
            from_ns: at_ns,
            to_ns: if unfinished { i64::MAX } else { end_ns(event) },
            is_span: event["ph"] == "X",
        };
        let phase = event["ph"].as_str().unwrap();
        let key = match phase {
            "B" | "E" => format!("{}/{}", event["pid"], event["tid"]),
            _ => format!("{} {}", event["id"], event["cat"]),
        };
        match phase {
            "B" if unfinished => {}
            "B" | "b" => open.entry(key).or_default().push(known.len()),
            "E" | "e" => {
                if let Some(begin) = open.get_mut(&key).and_then(Vec::pop) {
                    let begin: &mut KnownEvent = &mut known[begin];
                    (begin.to_ns, begin.is_span) = (at_ns, true);
                    (this.from_ns, this.is_span) = (begin.from_ns, true);
                }
            }
            _ => {}
        }
        known.push(this);
    }
    known
}

/// Returns an event with all its ids and times, and true if it is marked as cut.
fn comparable(event: &Value) -> (String, bool) {
    let (event, cut) = whole(event);
    (event.to_string(), cut)
}

/// Compares parts with the whole trace. Returns how often events are repeated in other parts.
fn check(whole: &Merged, parts: &[Part], what: &str) -> usize {
    let known = known_events(whole);
    let (mut next_ns, mut shown, mut linked) = (0, 0, 0);
    for (number, part) in parts.iter().enumerate() {
        let what = format!("{what} part {number}");
        let (from_ns, to_ns) = part.edges();
        assert_eq!(from_ns, next_ns, "{what}");
        next_ns = to_ns.saturating_add(1);
        let expected = known
            .iter()
            .filter(|event| event.from_ns <= to_ns && event.to_ns >= from_ns)
            .map(|event| {
                let crosses = event.from_ns < from_ns || event.to_ns > to_ns;
                (event.text.clone(), event.is_cut || event.is_span && crosses)
            });
        let found = sorted(part.trace.shown().map(comparable));
        assert_eq!(found, sorted(expected), "{what}");
        let events = part.data()["events"].as_u64().unwrap();
        let links = part.trace.links().count();
        linked += links;
        let added = whole.report.number("events_added") - whole.trace.links().count() as u64;
        let all = part.trace.events.len() - links;
        assert_eq!(all as u64, events + added, "{what}");
        let names = |trace: &Trace| (trace.process_names(), trace.thread_names());
        assert_eq!(names(&part.trace), names(&whole.trace), "{what}");
        assert_eq!(part.data()["number"], number + 1);
        assert_eq!(part.data()["of"], parts.len());
        shown += found.len();
    }
    assert_eq!(parts.last().unwrap().edges().1, i64::MAX, "{what}");
    assert_eq!(linked, whole.trace.links().count(), "{what}");
    shown - known.len()
}

/// Writes two files with begins and ends of spans, on threads and by ids. Some spans begin in the
/// second file and end in the first.
fn write_begins_and_ends(dir: &RunDir) {
    let line = |pid: u32, ph: &str, ts: u32, rest: &str| {
        format!(r#"{{"ph":"{ph}","pid":{pid},"tid":{pid},"ts":{ts},"cat":"c"{rest}}}"#)
    };
    let mut one = Fragment::foreign(20);
    let mut other = Fragment::foreign(21);
    for round in 0..200 {
        let at = 1_000 * round;
        let name = format!(r#","name":"step {round}""#);
        let id = format!(r#","id2":{{"global":"0x{round:x}"}},"name":"request {round}""#);
        one.line(&line(20, "B", at + 1, &name));
        one.line(&line(20, "B", at + 100, r#","name":"inner""#));
        if let Some(before) = round.checked_sub(3) {
            let id = format!(r#","id2":{{"global":"0x{before:x}"}},"name":"request {before}""#);
            one.line(&line(20, "e", at + 150, &id));
        }
        one.line(&line(20, "E", at + 900, ""));
        one.line(&line(20, "E", at + 950, r#","args":{"tokens":8}"#));
        other.line(&line(21, "b", at + 10, &id));
        other.line(&line(21, "i", at + 20, r#","s":"t","name":"queued""#));
        if round % 40 == 0 {
            other.line(&line(21, "B", at + 30, r#","name":"phase""#));
        }
        if round % 40 == 39 {
            other.line(&line(21, "E", at + 999, ""));
        }
    }
    one.write_here(&dir.fragments());
    other.write_here(&dir.fragments());
}

#[test]
fn parts_are_what_a_naive_filter_keeps() {
    let (mut repeated, mut split_runs) = (0, 0);
    for seed in 0..cases(CASES) {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        for pid in 100..103 {
            write_own(&mut rng, &dir.fragments(), pid, seed % 2 == 0);
        }
        write_foreign(&mut rng, &dir.fragments(), 200, 400, seed % 2 == 0);
        write_long(&mut rng, &dir);
        write_begins_and_ends(&dir);
        let mut whole = Merged::new(&["--no-settle"], &[dir.path()]);
        // The naive filter needs each begin before its end.
        let events = &mut whole.trace.events;
        events.sort_by_key(|event| event["ts"].as_f64().map_or(0, |_| ns(&event["ts"])));
        let size = format!("{}kB", 14 + rng.below(60));
        let what = format!("seed {seed} split {size}");
        let (parts, report) = split(dir.path(), &[], &size);
        repeated += check(&whole, &parts, &what);
        split_runs += usize::from(parts.len() > 1);
        let total = |report: &Report| report.number("events_total");
        assert_eq!(total(&report), total(&whole.report));
        for (part, entry) in parts.iter().zip(report.0["parts"].as_array().unwrap()) {
            let bytes = part.bytes.len() as u64;
            assert!(bytes <= report.number("split_bytes"), "{what}: {bytes}");
            assert_eq!([&entry["bytes"], &entry["text_bytes"]], [bytes, bytes]);
            assert_eq!(entry["events"], part.data()["events"]);
        }
        for threads in ["1", "3"] {
            let (again, _) = split(dir.path(), &["--threads", threads], &size);
            let bytes = |parts: &[Part]| {
                parts
                    .iter()
                    .map(|part| part.bytes.clone())
                    .collect::<Vec<_>>()
            };
            assert!(bytes(&again) == bytes(&parts), "{what}");
        }
    }
    assert!(repeated > 50 && split_runs > 7, "{repeated} {split_runs}");
}

#[test]
fn a_window_and_a_filter_can_be_split() {
    let (mut rng, dir) = (Rng::new(3), RunDir::new());
    write_foreign(&mut rng, &dir.fragments(), 200, 3_000, true);
    write_own(&mut rng, &dir.fragments(), 100, true);
    for options in [
        ["--from=200ms", "--to=700ms"].as_slice(),
        &["--cat=kernel"],
        &["--last=300ms", "--name=step*"],
    ] {
        let whole = Merged::new(&[&["--no-settle"], options].concat(), &[dir.path()]);
        let (parts, _) = split(dir.path(), options, "40kB");
        assert!(parts.len() > 1, "{options:?}: {}", whole.bytes.len());
        check(&whole, &parts, &format!("{options:?}"));
    }
}

#[test]
fn parts_are_nearly_as_large_as_requested() {
    let dir = run(60_000);
    let (parts, _) = split(dir.path(), &[], "700kB");
    assert!(parts.len() > 5);
    for part in &parts[..parts.len() - 1] {
        let bytes = part.bytes.len();
        assert!((660_000..=700_000).contains(&bytes), "{bytes}");
    }
}

#[test]
fn a_burst_is_found_in_a_long_run() {
    let hour_ns = 3_600_000_000_000;
    let burst = (0..2_000).map(|nth| hour_ns + nth);
    let times = [0].into_iter().chain(burst).chain([10 * hour_ns]);
    let line = |ts_ns| {
        let ts = micros(ts_ns);
        format!(r#"{{"ph":"i","pid":9,"tid":9,"ts":{ts},"s":"t","name":"a"}}"#)
    };
    let dir = RunDir::with_lines("9", &times.map(line).collect::<Vec<_>>());
    let (parts, _) = split(dir.path(), &[], "20kB");
    assert!((7..=9).contains(&parts.len()), "{}", parts.len());
    assert!(parts.iter().all(|part| part.bytes.len() <= 20_000));
    let events: usize = parts.iter().map(|part| part.trace.shown().count()).sum();
    assert_eq!(events, 2_002);
}

#[test]
fn viewers_load_parts_with_crossing_spans() {
    let dir = RunDir::new();
    write_begins_and_ends(&dir);
    for part in split(dir.path(), &[], "20kB").0 {
        let test = "viewers_load_parts_with_crossing_spans";
        assert_no_errors(test, &part.bytes, &["begins and ends"]);
        for phases in ["BE", "be"] {
            let [begins, ends] = [0, 1].map(|at| part.trace.phase(&phases[at..=at]).len());
            let few = (ends..=ends + 3).contains(&begins);
            assert!(few, "{phases}: {begins} {ends}");
        }
    }
}
