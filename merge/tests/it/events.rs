//! Events that consumers read ([`trace_merge::events`]), compared with the trace that a merge
//! writes.

use crate::clashing::{Clashing, Order};
use crate::clocks::{Host, Simulation};
use crate::foreign;
use crate::invocation::RunDir;
use crate::pypto;
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::{Trace, ns, whole};
use format_oracle::writer::line::stream;
use sa_format::Phase;
use serde_json::{Value, json};
use std::time::Duration;
use trace_merge::events::{self, PlacedEvent, TraceEvents};
use trace_merge::{
    AddedSpan, Addition, Error, EventOptions, Mode, Options, Output, Progress, Runs, Window,
};

/// An event in comparable form: one line of JSON with sorted keys.
type EventText = String;

/// Events that a consumer reads from the inputs.
struct Read {
    events: Vec<EventText>,
    /// Begin and end of each matched span, with its phase and name.
    spans: Vec<(String, i64, i64)>,
    /// Trace that the merge wrote in the same run.
    trace: Trace,
}

/// Reads the events of a part of a run, without links.
fn read(options: &Options, window: Window) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(output.clone()),
        settle: false,
        mode: Mode::Events(EventOptions {
            window,
            link_requests: false,
            ..EventOptions::default()
        }),
        ..options.clone()
    };
    let read = |events: &mut TraceEvents<'_>| Ok((event_texts(events)?, spans(events)?));
    let ((events, spans), _) =
        events::merge_and_read(&options, &Progress::default(), read).unwrap();
    let trace = Trace::parse(&std::fs::read(&output).unwrap());
    let (again, _) =
        events::read(&options, &Progress::default(), |events| event_texts(events)).unwrap();
    assert_eq!(again, events, "without a trace");
    Read {
        events,
        spans,
        trace,
    }
}

/// Returns the sorted results of `of_event` for all events except metadata.
fn collect<T: Ord + Send>(
    events: &TraceEvents<'_>,
    of_event: impl Fn(&PlacedEvent<'_>) -> Option<T> + Send + Sync,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    events.fold(
        Vec::new,
        |some, event| {
            if event.phase != Phase::Metadata {
                some.extend(of_event(event));
            }
        },
        |some| {
            all.extend(some);
            Ok(())
        },
    )?;
    all.sort();
    Ok(all)
}

fn event_texts(events: &TraceEvents<'_>) -> Result<Vec<EventText>, Error> {
    collect(events, |event| Some(event_text(events, event)))
}

fn event_text(events: &TraceEvents<'_>, event: &PlacedEvent<'_>) -> EventText {
    let thread = &events.threads()[event.thread];
    let process = &events.processes()[thread.process];
    let tid = match event.track {
        0 => thread.tid,
        track => thread.overlap_tracks[track - 1],
    };
    let args: Value = serde_json::from_slice(event.args()).unwrap_or_default();
    for (key, value) in args.as_object().into_iter().flatten() {
        let arg = event.arg(key).map(serde_json::from_slice::<Value>);
        assert_eq!(arg.unwrap().unwrap(), *value, "{key}");
    }
    assert_eq!(event.arg("no such arg"), None);
    json!({
        "ph": char::from(event.phase.byte()).to_string(),
        "pid": process.report.output_pid,
        "tid": tid,
        "ts": event.ts_ns,
        "dur": event.dur_ns,
        "name": event.name(),
        "cat": event.category(),
        "args": without_cut(args),
        "id": event.id(),
        "cut": event.is_cut,
    })
    .to_string()
}

/// Returns args without the members that a merge adds, or `null` if there are none.
fn without_cut(mut args: Value) -> Value {
    let members = args.as_object_mut();
    let is_empty = members.is_some_and(|members| {
        members.remove("sa_cut");
        members.is_empty()
    });
    if is_empty { Value::Null } else { args }
}

/// Converts a line of the trace, as it was before a window cut it.
fn line_text(line: &Value) -> EventText {
    let (line, is_cut) = whole(line);
    let id = line["id"].as_str().map(|id| {
        let digits = id.strip_prefix("0x").unwrap();
        u64::from_str_radix(digits, 16).unwrap()
    });
    json!({
        "ph": line["ph"],
        "pid": line["pid"],
        "tid": line["tid"],
        "ts": ns(&line["ts"]),
        "dur": line.get("dur").map_or(0, ns),
        "name": line["name"].as_str().unwrap_or_default(),
        "cat": line["cat"].as_str().unwrap_or_default(),
        "args": without_cut(line["args"].clone()),
        "id": id,
        "cut": is_cut,
    })
    .to_string()
}

/// Returns the matched spans, sorted.
fn spans(events: &mut TraceEvents<'_>) -> Result<Vec<(String, i64, i64)>, Error> {
    events.match_spans()?;
    collect(events, |event| match (event.phase, event.end_ns()) {
        (Phase::Begin | Phase::AsyncBegin, Some(end_ns)) => {
            let name = format!("{} {}", char::from(event.phase.byte()), event.name());
            Some((name, event.ts_ns, end_ns))
        }
        _ => None,
    })
}

/// Compares all events, and returns their number.
fn check(options: &Options, window: Window) -> usize {
    let read = read(options, window);
    let lines = read.trace.events.iter();
    let lines = lines.filter(|line| line["ph"] != "M");
    let mut expected: Vec<EventText> = lines.map(line_text).collect();
    expected.sort();
    let is_unexpected = |text: &&EventText| !expected.contains(text);
    let more: Vec<&EventText> = read.events.iter().filter(is_unexpected).collect();
    assert!(more.is_empty(), "{options:?}: {more:?}");
    assert_eq!(read.events, expected, "{options:?}");
    read.events.len()
}

#[test]
fn every_event_is_the_same_as_in_the_trace() {
    let mut events = 0;
    for seed in 0..40 {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        for pid in 0..3 {
            write_own(&mut rng, &dir.fragments(), 300 + pid, seed % 2 == 0);
        }
        write_foreign(&mut rng, &dir.fragments(), 400, 60, seed % 3 == 0);
        // Overlapping spans get lanes of their own.
        let mut thread = Clashing::new(&mut rng, 903, 2_000);
        (0..100).for_each(|serial| thread.add_random(serial, 300));
        dir.put("900", &stream(&thread.lines(Order::None)));
        let whole = Options::new([dir.path().to_owned()]);
        events += check(&whole, Window::WholeRun);
        let last = Duration::from_micros(500 + 100 * seed);
        events += check(&whole, Window::Last(last));
    }
    assert!(events > 6_000, "{events}");
}

#[test]
fn events_of_other_profilers_are_the_same_as_in_the_trace() {
    let names = "kineto.json trace_view.json tracing-chrome.json viztracer.json";
    let fixtures = names.split(' ').map(foreign::fixture);
    for path in fixtures.chain([pypto::fixture()]) {
        let options = Options::new([path]);
        assert!(check(&options, Window::WholeRun) > 0, "{options:?}");
    }
}

/// An end belongs to the last open begin with its name, on its thread or with its async id. Async
/// events come in any order, and the spans of a thread nest.
#[test]
fn begins_and_ends_are_matched_as_viewers_do() {
    let mut matched = 0;
    for seed in 0..60 {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        let (mut lines, mut async_lines, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        // Open spans of the thread and of each id: name and begin in ns.
        let mut open: [Vec<(&str, i64)>; 4] = Default::default();
        for ts_us in 0..800 {
            let id = rng.below(4);
            let [begin, end] = [["B", "E"], ["b", "e"]][id.min(1)];
            let (open, mut name) = (&mut open[id], ["one", "two"][rng.below(2)]);
            let is_end = (id > 0 || !open.is_empty()) && (open.len() == 20 || rng.one_in(2));
            if is_end {
                name = open.last().filter(|_| id == 0).map_or(name, |last| last.0);
                let begun = open.iter().rposition(|(begun, _)| *begun == name);
                let begun = begun.map(|at| open.remove(at).1);
                let span = |begin_ns| (format!("{begin} {name}"), begin_ns, 1000 * ts_us);
                expected.extend(begun.map(span));
            } else {
                open.push((name, 1000 * ts_us));
            }
            let phase = if is_end { end } else { begin };
            let on = format!(r#""pid":7,"tid":7,"cat":"c","id":{id}"#);
            let line = format!(r#"{{"ph":"{phase}","ts":{ts_us},"name":"{name}",{on}}}"#);
            match id {
                0 => lines.push(line),
                _ => async_lines.insert(rng.below(async_lines.len() + 1), line),
            }
        }
        lines.extend(async_lines);
        dir.put("7", &stream(&lines));
        let read = read(&Options::new([dir.path().to_owned()]), Window::WholeRun);
        expected.sort();
        assert_eq!(read.spans, expected, "{seed}");
        matched += read.spans.len();
    }
    assert!(matched > 13_000, "{matched}");
}

#[test]
fn an_input_that_changes_while_it_is_read_is_damage() {
    let dir = RunDir::new();
    let line = |name: &str| {
        format!(r#"{{"ph":"X","pid":7,"tid":7,"ts":1,"dur":1,"name":"{name}","cat":"c"}}"#)
    };
    // The input is long enough to be mapped instead of copied.
    let path = dir.put("7", &stream(&vec![line("before"); 2_000]));
    let options = Options {
        output: Output::Stdout,
        settle: false,
        ..Options::new([dir.path().to_owned()])
    };
    let mut calls = 0;
    let (names, report) = events::read(&options, &Progress::default(), |events| {
        calls += 1;
        if calls == 1 {
            std::fs::write(&path, stream(&[line("after")])).unwrap();
        }
        collect(events, |event| Some(event.name().into_owned()))
    })
    .unwrap();
    assert_eq!(calls, 1);
    let is_of_a_line = |name: &String| name == "before" || name == "after";
    assert!(names.iter().all(is_of_a_line), "{names:?}");
    assert_eq!(report.damage.by_kind.get("changed"), Some(&1));
}

#[test]
fn an_error_of_the_consumer_ends_the_run() {
    let dir = RunDir::new();
    dir.put("7", b"{\"ph\":\"i\",\"pid\":7,\"ts\":1,\"name\":\"n\"}\n");
    let options = Options::new([dir.path().to_owned()]);
    let no = || Error::Usage("no".to_owned());
    let read = events::merge_and_read(&options, &Progress::default(), |_| Err::<(), _>(no()));
    assert!(matches!(read, Err(Error::Usage(why)) if why == "no"));
    assert!(!dir.path().join("trace.json").exists());
}

#[test]
fn tracks_that_a_consumer_adds_are_not_read_again() {
    let dir = RunDir::new();
    dir.put("7", b"{\"ph\":\"i\",\"pid\":7,\"ts\":1,\"name\":\"n\"}\n");
    let merge = |input: &str, output: &str, addition: &Addition| {
        let output = dir.path().join(output);
        std::fs::create_dir_all(output.parent().unwrap()).unwrap();
        let options = Options {
            output: Output::File(output.clone()),
            settle: false,
            ..Options::new([dir.path().join(input)])
        };
        let read = |events: &mut TraceEvents<'_>| {
            events.add(addition.clone());
            Ok(())
        };
        let ((), report) = events::merge_and_read(&options, &Progress::default(), read).unwrap();
        let text = std::fs::read_to_string(output).unwrap();
        let (head, events) = text.split_once('\n').unwrap();
        (head.to_owned(), events.to_owned(), report.events_added)
    };
    let (none, addition) = (
        Addition::default(),
        Addition {
            process: "findings".to_owned(),
            spans: vec![AddedSpan {
                track: "finding".to_owned(),
                name: "a \"queue\"".to_owned(),
                from_ns: 1_500,
                dur_ns: 2_000,
                args: json!({ "cost": 0.5 }),
            }],
            view: json!({ "end_ns": 5 }),
        },
    );
    let (head, events, added) = merge("fragments", "plain/t.json", &none);
    let (full_head, full_events, full_added) = merge("fragments", "full/t.json", &addition);
    assert_eq!(full_head.replace(r#""view":{"end_ns":5},"#, ""), head);
    assert!(full_head.len() > head.len());
    let rows = full_events.strip_prefix(events.strip_suffix("\n]}\n").unwrap());
    let rows: Vec<&str> = rows.unwrap().split(",\n").collect();
    assert_eq!((rows.len(), full_added - added), (6, 5), "{rows:?}");
    assert_eq!(
        rows[5],
        r#"{"ph":"X","pid":1,"tid":1,"ts":1.500,"dur":2.000,"name":"a \"queue\"","cat":"sa_findings","args":{"cost":0.5}}
]}
"#
    );
    let again = merge("full/t.json", "again/full.json", &none);
    assert_eq!(again, merge("plain/t.json", "again/plain.json", &none));
}

/// The processes of each host have the uncertainty of the host's clock, and those of another
/// profiler have its trace's.
#[test]
fn processes_have_their_clock_and_profiler() {
    let hosts = vec![Host::new(0, 0, 0), Host::new(7_000_000_000, 0, 1_000_000)];
    let mut simulation = Simulation::new(hosts, 1_000_000_000, 1);
    simulation.spans(20);
    let dir = simulation.write();
    let options = Options {
        settle: false,
        runs: Runs::All,
        ..Options::new([dir.path().to_owned(), foreign::fixture("kineto.json")])
    };
    let origins = |events: &mut TraceEvents<'_>| {
        let origins = events.processes().iter().map(|process| {
            let host = process.report.host.clone();
            let profiler = process.profiler.map(str::to_owned);
            (host, process.clock_uncertainty_ns, profiler)
        });
        Ok(origins.collect::<Vec<_>>())
    };
    let (origins, report) = events::read(&options, &Progress::default(), origins).unwrap();
    let mut recorded = 0;
    for (host, uncertainty_ns, profiler) in origins {
        let Some(host) = host else {
            assert!(uncertainty_ns.is_some());
            assert_eq!(profiler.as_deref(), Some("kineto.json"));
            continue;
        };
        let mut clocks = report.clocks.placements.iter();
        let clock = clocks.find(|clock| clock.host == host).unwrap();
        assert_eq!((uncertainty_ns, profiler), (clock.uncertainty_ns, None));
        recorded += 1;
    }
    assert_eq!(recorded, 2);
}

#[test]
fn verbatim_mode_is_rejected() {
    let options = Options {
        mode: Mode::Verbatim,
        ..Options::new([pypto::fixture()])
    };
    let read = events::read(&options, &Progress::default(), |_| Ok(()));
    let Err(Error::Usage(why)) = read else {
        panic!("{read:?}");
    };
    assert!(why.contains("common time axis"), "{why}");
}
