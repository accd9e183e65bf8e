//! Open spans that overlap or receive arguments late.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{HOST, host};
use e2e::chance::rounds;
use e2e::host_support::{HostRecording, Merged, scratch, undisturbed};
use format_oracle::reader::read_dir;
use serde_json::{Value, json};
use trace_merge::Filter;

/// Ways to end with open spans: text before and after the command that opens them.
const KILL: [&str; 2] = ["", ", die"];
const THREAD: [&str; 2] = ["thread, ", ""];

/// Runs a host that leaves spans open and either succeeds or is killed.
fn leave_open(dir: &Path, opens: &str, ending: [&str; 2]) {
    let outcome = host(dir, &[&format!("{}{opens}{}", ending[0], ending[1])]).run();
    let _ended = match ending {
        KILL => outcome.was_killed(),
        _ => outcome.quiet(),
    };
}

#[test]
fn late_arguments_stay_with_their_span_and_overlapping_spans_leak_no_memory() {
    let dir = scratch();
    let count = rounds(30_000, 200_000);
    let outcome = undisturbed(HOST, dir.path(), &["rounds", &count.to_string()]);
    assert_eq!(outcome.stdout, format!("rounds {count}\n"));
    let counts = ["a", "b", "c", "kernel", "step"].map(|label| (label, count as u64));
    let expected = [counts.as_slice(), &[("serve", 1)]].concat();
    HostRecording::in_dir(dir.path()).assert_exactly(&expected);
    let events = read_dir(dir.path()).events.into_iter();
    for event in events.filter(|event| event["args"]["late"].is_number()) {
        let args = &event["args"];
        assert_eq!(args["late"], args["index"], "{event}");
        assert_eq!(args["tokens"] == 8, args["label"] == "step", "{event}");
    }
}

/// Runs `open-many`. Returns the indices of the deep and of the async spans shown as unfinished, and the number of lost events.
fn open_many(ending: [&str; 2], spans: u64, requests: u64) -> (Vec<u64>, Vec<u64>, u64) {
    let dir = scratch();
    leave_open(dir.path(), &format!("open-many {spans} {requests}"), ending);
    let read = read_dir(dir.path());
    let indices = |events: &[Value], label: &str| {
        let spans = events
            .iter()
            .filter(|event| event["ph"] == "B" && event["args"]["label"] == label);
        let mut indices: Vec<_> = spans
            .filter_map(|event| event["args"]["index"].as_u64())
            .collect();
        indices.sort_unstable();
        indices
    };
    let shown = ["deep", "async"].map(|label| indices(&read.unfinished, label));
    for round in ["from the ring", "settled"] {
        let merged = Merged::newest(dir.path());
        let found = ["deep", "async"].map(|label| indices(merged.events(), label));
        assert!(found == shown, "{ending:?}, {round}");
        assert_eq!(merged.lost(), read.lost, "{ending:?}, {round}");
        assert_eq!(merged.damage(), Vec::<String>::new(), "{ending:?}, {round}");
    }
    let ended = HostRecording::in_dir(dir.path()).recorded();
    assert_eq!(ended, 5, "{ending:?}");
    let [deep, requests] = shown;
    (deep, requests, read.lost)
}

#[test]
fn issue_47_all_open_spans_are_shown_however_many_there_are() {
    for ending in [KILL, ["thread, ", ", exit"], THREAD] {
        let opened = rounds(2500, 4000) as u64;
        let (deep, requests, lost) = open_many(ending, 1000, opened);
        let left: Vec<u64> = (0..998).filter(|index| *index != 1).collect();
        assert!(deep == left, "{ending:?}: {} deep", deep.len());
        let count = requests.len();
        let is_right = requests == Vec::from_iter(1..opened - 1);
        assert!(is_right, "{ending:?}: {count} async");
        assert_eq!(lost, 0, "{ending:?}");
    }
}

#[test]
fn issue_47_open_spans_without_room_are_counted() {
    // With the largest page size, a chunk has room for a few more spans of a thread.
    let cases = [(14_000, 1000, 4096), (100, 70_000, 65_536)];
    for (spans, requests, least) in cases.into_iter().take(rounds(1, 2)) {
        let (deep, in_flight, lost) = open_many(KILL, spans, requests);
        let shown = (deep.len() + in_flight.len()) as u64;
        assert_eq!(shown + lost + 5, spans + requests);
        let of_many = if spans > requests { deep } else { in_flight };
        assert!(lost > 0 && of_many.len() >= least, "{}", of_many.len());
    }
}

/// Returns the args of the spans that `open-all` opens, by name.
fn expected_args() -> BTreeMap<String, Value> {
    let ids: Vec<String> = (0..100).map(|at| format!("cmpl-{at:032}")).collect();
    let args = json!({
        "step": {"request_id": "cmpl-1", "batch": 42, "tokens": 8, "unfinished": true},
        "named": {"key": "\"a\"\n", "unfinished": true},
        "a name that is longer than what an entry holds": {"first": 1, "unfinished": true},
        "many": {"ids": ids, "batch": 100, "unfinished": true},
        "long": {"request_id": "cmpl-9", "n": 1, "sa_args_cut": 1, "unfinished": true},
        "bare": {"unfinished": true},
        "request": {"request_id": "cmpl-2", "prompt_tokens": 12, "unfinished": true},
        "child": {"request_id": "cmpl-3", "unfinished": true},
        "by id": {"request_id": "cmpl-4", "unfinished": true},
        "long async": {"request_id": "cmpl-5", "sa_args_cut": 1, "unfinished": true},
    });
    serde_json::from_value(args).unwrap()
}

/// Returns the args of the unfinished spans among events, by name.
fn args_by_name<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    let begun = events.into_iter().filter(|event| event["ph"] == "B");
    let named = |event: &Value| {
        assert_eq!(event["cat"], "host", "{event}");
        let name = event["name"].as_str().unwrap_or_default();
        (name.to_owned(), event["args"].clone())
    };
    begun.map(named).collect()
}

#[test]
fn issue_19_open_spans_keep_their_args() {
    for ending in [KILL, ["", ", finish"], THREAD] {
        let dir = scratch();
        leave_open(dir.path(), "open-all", ending);
        let read = read_dir(dir.path());
        assert_eq!(
            args_by_name(&read.unfinished),
            expected_args(),
            "{ending:?}"
        );
        for round in ["from the ring", "settled"] {
            let merged = Merged::newest(dir.path());
            let found = args_by_name(merged.events());
            assert_eq!(found, expected_args(), "{ending:?}, {round}");
            assert_eq!(merged.damage(), Vec::<String>::new(), "{ending:?}, {round}");
        }
    }
}

#[test]
fn issue_19_the_args_of_open_spans_are_found_by_request() {
    let dir = scratch();
    leave_open(dir.path(), "open-all", KILL);
    for (request, spans) in [("cmpl-1", ["queued", "step"]), ("cmpl-2", ["request"; 2])] {
        let filter = Filter {
            requests: vec![request.to_owned()],
            ..Filter::default()
        };
        let merged = Merged::filtered(dir.path(), filter);
        let events = merged.events().iter();
        let shown = events.filter(|event| event["cat"] == "host");
        let names: BTreeSet<_> = shown.map(|event| event["name"].as_str()).collect();
        assert_eq!(names, spans.map(Some).into(), "{request}");
    }
    let merged = Merged::newest(dir.path());
    let (queued, step) = (merged.event("queued"), merged.event("step"));
    let flows = merged.events().iter();
    let flows = flows.filter(|event| matches!(event["ph"].as_str(), Some("s" | "t" | "f")));
    let at: Vec<_> = flows.map(|event| &event["ts"]).collect();
    let is_linked = |event: &Value| at.contains(&&event["ts"]);
    assert!(is_linked(queued) && is_linked(step), "{at:?}");
}
