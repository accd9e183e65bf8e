//! `--split`: parts of a trace, held against a naive filter of the whole one.

use crate::invocation::{Ended, Merged, Report, RunDir, trace_merge};
use crate::output::names;
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::{Trace, ns, whole};
use crate::window::{end_ns, write_long};
use format_oracle::writer::Fragment;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

const CASES: u64 = 40;

/// A part as it was written.
pub(crate) struct Part {
    pub(crate) trace: Trace,
    pub(crate) bytes: Vec<u8>,
}

impl Part {
    fn data(&self) -> &Value {
        &self.trace.document["otherData"]["part"]
    }

    /// Its begin and end in ns from the base.
    fn edges(&self) -> (i64, i64) {
        let from = self.data()["from_ns"].as_i64().unwrap();
        (from, self.data()["to_ns"].as_i64().unwrap_or(i64::MAX))
    }
}

/// Splits a run and reads the parts, which must be all there is.
pub(crate) fn split(run: &Path, options: &[&str], size: &str) -> (Vec<Part>, Report) {
    let folder = tempfile::tempdir().unwrap();
    let ended = Ended::of(
        trace_merge()
            .args(["--no-settle", "--report", "json", "--split", size])
            .args(options)
            .arg("-o")
            .arg(folder.path().join("out.json"))
            .arg(run),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let report = ended.report();
    let told = report.0["parts"].as_array().unwrap();
    let paths: Vec<&Path> = told
        .iter()
        .map(|part| Path::new(part["path"].as_str().unwrap()))
        .collect();
    let told: Vec<_> = paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names(folder.path()), told);
    let read = |path: &&Path| {
        let bytes = std::fs::read(path).unwrap();
        Part {
            trace: Trace::parse(&bytes),
            bytes,
        }
    };
    (paths.iter().map(read).collect(), report)
}

/// An event of the whole trace, and from when to when it is there.
struct Known {
    text: String,
    from_ns: i64,
    to_ns: i64,
    is_span: bool,
}

/// Events of the whole trace; the halves of a span last as long as the span.
fn known(whole: &Merged) -> Vec<Known> {
    let mut known = Vec::new();
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for event in whole.trace.shown() {
        let at_ns = ns(&event["ts"]);
        let unfinished = event["args"]["unfinished"] == true;
        let mut this = Known {
            text: comparable(event).0,
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
                    let begin: &mut Known = &mut known[begin];
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

/// An event with all its ids and times, and whether it is marked as cut.
fn comparable(event: &Value) -> (String, bool) {
    let (event, cut) = whole(event);
    (event.to_string(), cut)
}

fn sorted(mut events: Vec<(String, bool)>) -> Vec<(String, bool)> {
    events.sort_unstable();
    events
}

/// Compares parts with the whole trace; the number of events that are in more than one.
pub(crate) fn check(whole: &Merged, parts: &[Part], what: &str) -> usize {
    let known = known(whole);
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
                (event.text.clone(), event.is_span && crosses)
            });
        let found = sorted(part.trace.shown().map(comparable).collect());
        assert_eq!(found, sorted(expected.collect()), "{what}");
        let told = part.data()["events"].as_u64().unwrap();
        let links = part.trace.links().count();
        linked += links;
        let added = whole.report.number("events_added") - whole.trace.links().count() as u64;
        let all = part.trace.events.len() - links;
        assert_eq!(all as u64, told + added, "{what}");
        assert_eq!(
            part.trace.process_names(),
            whole.trace.process_names(),
            "{what}"
        );
        assert_eq!(
            part.trace.thread_names(),
            whole.trace.thread_names(),
            "{what}"
        );
        assert_eq!(part.data()["number"], number + 1);
        assert_eq!(part.data()["of"], parts.len());
        shown += found.len();
    }
    assert_eq!(parts.last().unwrap().edges().1, i64::MAX, "{what}");
    assert_eq!(linked, whole.trace.links().count(), "{what}");
    shown - known.len()
}

#[test]
fn parts_are_what_a_naive_filter_keeps() {
    let (mut repeated, mut split_runs) = (0, 0);
    for seed in 0..CASES {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        for pid in 100..103 {
            write_own(&mut rng, &dir.fragments(), pid, seed % 2 == 0);
        }
        write_foreign(&mut rng, &dir.fragments(), 200, 400, seed % 2 == 0);
        write_long(&mut rng, &dir);
        let whole = Merged::of(&["--no-settle"], &[dir.path()]);
        let size = format!("{}kB", 14 + rng.below(60));
        let what = format!("seed {seed} split {size}");
        let (parts, report) = split(dir.path(), &[], &size);
        repeated += check(&whole, &parts, &what);
        split_runs += usize::from(parts.len() > 1);
        assert_eq!(
            report.number("events_total"),
            whole.report.number("events_total")
        );
        for (part, told) in parts.iter().zip(report.0["parts"].as_array().unwrap()) {
            let limit = report.number("split_bytes");
            assert!(
                part.bytes.len() as u64 <= limit,
                "{what}: {}",
                part.bytes.len()
            );
            assert_eq!(told["bytes"], part.bytes.len());
            assert_eq!(told["text_bytes"], part.bytes.len());
            assert_eq!(told["events"], part.data()["events"]);
        }
        for threads in ["1", "3"] {
            let (again, _) = split(dir.path(), &["--threads", threads], &size);
            assert!(
                again
                    .iter()
                    .zip(&parts)
                    .all(|(one, other)| one.bytes == other.bytes),
                "{what}"
            );
            assert_eq!(again.len(), parts.len());
        }
    }
    assert!(repeated > 100 && split_runs > 15, "{repeated} {split_runs}");
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
        let whole = Merged::of(&[&["--no-settle"], options].concat(), &[dir.path()]);
        let (parts, _) = split(dir.path(), options, "40kB");
        assert!(parts.len() > 1, "{options:?}: {}", whole.bytes.len());
        let mut events: Vec<String> = Vec::new();
        for part in &parts {
            let (from_ns, _) = part.edges();
            let begun = part
                .trace
                .shown()
                .filter(|event| ns(&event["ts"]) >= from_ns || from_ns == 0);
            events.extend(begun.map(|event| comparable(event).0));
        }
        let mut expected: Vec<String> = whole
            .trace
            .shown()
            .map(|event| comparable(event).0)
            .collect();
        events.sort_unstable();
        expected.sort_unstable();
        assert_eq!(
            events, expected,
            "{options:?}: each event begins in one part"
        );
    }
}

#[test]
fn parts_are_nearly_as_large_as_asked_for() {
    let dir = crate::output::run(60_000);
    let (parts, _) = split(dir.path(), &[], "700kB");
    assert!(parts.len() > 5);
    for part in &parts[..parts.len() - 1] {
        assert!(
            (660_000..=700_000).contains(&part.bytes.len()),
            "{}",
            part.bytes.len()
        );
    }
}

#[test]
fn a_burst_is_found_in_a_long_run() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(9);
    let line = |at: u64| {
        format!(
            r#"{{"ph":"i","pid":9,"tid":9,"ts":{}.{:03},"s":"t","name":"a"}}"#,
            at / 1000,
            at % 1000
        )
    };
    fragment.line(&line(0));
    for at in 0..2_000 {
        fragment.line(&line(3_600_000_000_000 + at));
    }
    fragment.line(&line(36_000_000_000_000));
    fragment.write_here(&dir.fragments());
    let (parts, _) = split(dir.path(), &[], "20kB");
    assert!((7..=9).contains(&parts.len()), "{}", parts.len());
    assert!(parts.iter().all(|part| part.bytes.len() <= 20_000));
    let events: usize = parts.iter().map(|part| part.trace.shown().count()).sum();
    assert_eq!(events, 2_002);
}
