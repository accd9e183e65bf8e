//! Traces that say little, or too much.

use crate::golden::{fixture, of_lines};
use serde_json::{Value, json};
use trace_merge::{Options, Output, Progress};
use trace_report::{ReportOptions, RequestStatus, merge_and_read, screen};

#[test]
fn one_event_gives_words() {
    let found =
        of_lines(&[json!({"ph": "i", "pid": 1, "tid": 1, "ts": 1, "s": "t", "name": "alone"})]);
    let text = screen::text(&found);
    assert!(
        text.contains("recorded   1 process, 0 ns, 1 event\n"),
        "{text}"
    );
    assert!(text.contains("requests   none is named"), "{text}");
    assert!(text.contains("no span has a begin and an end"), "{text}");
}

#[test]
fn negative_durations_and_lone_ends_are_no_time() {
    let found = of_lines(&[
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": -5, "name": "negative"}),
        json!({"ph": "E", "pid": 1, "tid": 1, "ts": 20, "name": "lone end"}),
        json!({"ph": "B", "pid": 1, "tid": 1, "ts": 30, "name": "lone begin"}),
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 40, "dur": 2, "name": "good"}),
    ]);
    let of = |name: &str| found.names.iter().find(|one| one.name == name).cloned();
    assert!(of("negative").is_none_or(|name| name.ttot_ns == 0));
    assert!(of("lone end").is_none());
    let lone = of("lone begin").unwrap();
    assert_eq!((lone.ncall, lone.unfinished, lone.tsub_ns), (0, 1, 0));
    // It is open to the end of the trace, and takes nothing from what lies in it.
    assert_eq!(of("good").unwrap().tsub_ns, 2_000);
    assert!(screen::text(&found).contains("1 span without an end"));
}

#[test]
fn very_many_names_and_deep_rows_are_counted() {
    let span = |nth: u64| json!({"ph": "X", "pid": 1, "tid": 1 + nth, "ts": 1, "dur": 1, "name": format!("name {nth}")});
    let found = of_lines(&(0..20_000).map(span).collect::<Vec<_>>());
    assert_eq!(found.names.len(), 20_000);
    let deep = |nth: u64| json!({"ph": "X", "pid": 1, "tid": 1, "ts": nth, "dur": 100_000 - 2 * nth, "name": "deep"});
    let found = of_lines(&(0..20_000).map(deep).collect::<Vec<_>>());
    let name = &found.names[0];
    assert_eq!(
        (name.ncall, name.ncall_outermost, name.tsub_ns),
        (20_000, 1, 100_000_000)
    );
}

#[test]
fn texts_of_a_trace_command_no_terminal() {
    let found = of_lines(&[
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a\u{1b}[2J\u{202e}b"}),
    ]);
    let text = screen::text(&found);
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text:?}"
    );
}

/// An async span has its reason on its end. One whose begin is not there is no request, and neither is an end in the engine alone.
#[test]
fn ends_tell_why() {
    let line = |phase: &str, ts: u64, id: &str, args: Value| json!({"ph": phase, "pid": 1, "tid": 1, "ts": ts, "id": id, "cat": "request", "name": "request", "args": args});
    let found = of_lines(&[
        line("b", 10, "0x1", json!({"request_id": "r"})),
        line(
            "e",
            30,
            "0x1",
            json!({"request_id": "r", "reason": "abort", "output_tokens": 3}),
        ),
        line(
            "e",
            50,
            "0x2",
            json!({"request_id": "lone", "reason": "stop"}),
        ),
        json!({"ph": "i", "pid": 1, "tid": 1, "ts": 70, "s": "t", "name": "request.finished", "args": {"request_id": "ended"}}),
    ]);
    let [request] = found.request.as_slice() else {
        panic!("{:?}", found.request)
    };
    let told = (request.e2e_ns(), request.status(), request.output_tokens());
    assert_eq!(told, (Some(20_000), RequestStatus::Aborted, Some(3)));
}

#[test]
fn a_report_that_is_not_made_keeps_no_trace_from_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(trace.clone()),
        ..Options::new([fixture("serving.json")])
    };
    let few = ReportOptions {
        most_events: Some(3),
        ..ReportOptions::default()
    };
    let (found, merged) = merge_and_read(&options, &few, &Progress::default()).unwrap();
    let why = found.unwrap_err().to_string();
    assert_eq!(why, "expected 3 events at most, found 26");
    assert_eq!(
        (merged.output.path, trace.exists()),
        (Some(trace.clone()), true)
    );
}

/// Each id costs what it is long, not what all of them are.
#[test]
fn an_event_of_very_many_requests_is_read_once() {
    let ids: Vec<String> = (0..20_000).map(|nth| format!("request-{nth}")).collect();
    let found = of_lines(&[
        json!({"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "name": "http.batch", "args": {"request_ids": ids, "reason": "stop"}}),
    ]);
    assert_eq!((found.requests.n, found.requests.ok), (20_000, 20_000));
}

#[test]
fn ids_may_be_whole_numbers() {
    let span = |id: Value| json!({"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "name": "http.one", "args": id});
    let found = of_lines(&[
        span(json!({"request_id": 7})),
        span(json!({"request_ids": [8, "x", -1, null]})),
    ]);
    let ids: Vec<&str> = found
        .request
        .iter()
        .map(|request| request.request_id())
        .collect();
    assert_eq!(ids, ["7", "8", "x"]);
}

#[test]
fn sums_beyond_all_bounds_are_the_bound() {
    let long = |tid: u64| json!({"ph": "X", "pid": 1, "tid": tid, "ts": 1, "dur": 20_000_000_000_000_u64, "name": "long"});
    let found = of_lines(&(1..=600).map(long).collect::<Vec<_>>());
    assert_eq!(
        (found.names[0].ttot_ns, found.names[0].tsub_ns),
        (i64::MAX, i64::MAX)
    );
}
