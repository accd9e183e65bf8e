//! Times with unusually many requests, streams and their queues, and names told apart: small traces whose figures are known.

use crate::golden::{of_lines, of_lines_with};
use serde_json::{Value, json};
use trace_report::{NamesBy, ReportOptions, RunReport, screen};

fn request(id: &str, ts: u64, dur: u64) -> Value {
    json!({"ph": "X", "pid": 9, "tid": ts + 1, "ts": ts, "dur": dur, "name": "http.request", "args": {"request_id": id}})
}

/// One request after another, and six at once in the middle.
fn with_spike() -> Vec<Value> {
    let mut lines: Vec<Value> = (0..40)
        .map(|nth| request(&format!("one{nth}"), nth * 1_000, 900))
        .collect();
    lines.extend((0..6).map(|nth| request(&format!("many{nth}"), 20_100 + nth * 10, 1_500)));
    lines
}

#[test]
fn a_spike_has_its_time_and_its_requests() {
    let found = of_lines(&with_spike());
    assert_eq!(found.spikes.n, 1);
    let [spike] = found.spikes.longest.as_slice() else {
        panic!("{:?}", found.spikes)
    };
    // From the first of the six to the end of the last one: then one is under way, as in half of the time.
    assert_eq!((spike.start_ns, spike.dur_ns), (20_100_000, 1_550_000));
    assert_eq!((spike.peak, spike.requests), (7, 8));
    assert_eq!(spike.request_ids[..3], ["one20", "many0", "many1"]);
    let mean_ns = (6.0 * 1.5e6 + 2.0 * 0.9e6) / 8.0;
    assert!((spike.e2e_mean_ns.unwrap() - mean_ns).abs() < 1.0);
    assert!((spike.others_e2e_mean_ns.unwrap() - 0.9e6).abs() < 1.0);
    let text = screen::text(&found);
    let words = "1 spike, the longest at 20.1 ms for 1.55 ms: up to 7 requests at once, 8 in all of 1.35 ms on average, and 900 µs outside";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("request  20.1 ms  1.50 ms  many"), "{text}");
}

#[test]
fn an_even_load_has_no_spike() {
    let lines: Vec<Value> = (0..40)
        .map(|nth| request(&format!("r{nth}"), nth * 1_000, 900))
        .collect();
    assert_eq!(of_lines(&lines).spikes.n, 0);
    assert_eq!(of_lines(&[request("only", 0, 10)]).spikes.n, 0);
}

fn slice(stream: u64, ts: u64, dur: u64, cat: &str, queue_us: Option<u64>) -> Value {
    let args = queue_us.map_or(json!({}), |us| json!({"queue_us": us}));
    json!({"ph": "X", "pid": 101, "tid": stream, "ts": ts, "dur": dur, "name": "matmul", "cat": cat, "args": args})
}

/// One device with two streams: on the first, three were launched at once.
fn two_streams() -> Vec<Value> {
    let meta = |tid: u64, name: &str, text: &str| json!({"ph": "M", "pid": 101, "tid": tid, "name": name, "args": {"name": text, "labels": text}});
    vec![
        meta(1, "process_name", "NPU 0"),
        meta(1, "process_labels", "NPU 0"),
        meta(1, "thread_name", "stream 1"),
        meta(2, "thread_name", "stream 2"),
        slice(1, 1_000, 100, "kernel", Some(0)),
        slice(1, 1_100, 100, "kernel", Some(100)),
        slice(1, 1_200, 100, "kernel", Some(200)),
        slice(2, 1_150, 850, "graph", None),
    ]
}

#[test]
fn streams_have_their_own_time_and_queue() {
    let found = of_lines(&two_streams());
    let [one, other] = found.stream.as_slice() else {
        panic!("{:?}", found.stream)
    };
    assert_eq!(
        (&*one.name, one.slices, one.replays, one.busy_ns),
        ("stream 1", 3, 0, 300_000)
    );
    // At 1,000 the third launch finds the second one waiting: the first has begun. Together they wait 300 of the device's 1,000 µs.
    assert_eq!(one.max_queue, Some(2));
    assert!((one.mean_queue.unwrap() - 0.3).abs() < 1e-9);
    assert_eq!(
        (&*other.name, other.replays, other.busy_ns, other.max_queue),
        ("stream 2", 1, 850_000, None)
    );
    let text = screen::text(&found);
    assert!(text.contains("2 of 2 streams; queue:"), "{text}");
    let row = "NPU 0  stream 1       3  30.0 %        0    0.3        2";
    assert!(text.contains(row), "{text}");
}

fn names_by(lines: &[Value], names_by: NamesBy) -> RunReport {
    let options = ReportOptions {
        names_by,
        ..ReportOptions::default()
    };
    of_lines_with(lines, &options)
}

/// Each name with what it is counted for, in the order of these.
fn groups(report: &RunReport) -> Vec<(Option<&str>, &str, u64)> {
    let of = report.names.iter();
    let mut groups: Vec<_> = of
        .map(|name| (name.group.as_deref(), &*name.name, name.ncall))
        .collect();
    groups.sort_unstable();
    groups
}

#[test]
fn names_are_told_apart_by_thread_and_by_request() {
    let by_thread = names_by(&two_streams(), NamesBy::Thread);
    // On its track a replay has another category, but no other name.
    assert_eq!(
        groups(&by_thread),
        [
            (Some("stream 1"), "matmul", 3),
            (Some("stream 2"), "matmul", 1)
        ]
    );
    assert!(by_thread.names.iter().all(|name| name.process == Some(0)));
    let text = screen::names_text(&by_thread, screen::NameOrder::Tsub, 9);
    assert!(text.contains("matmul [track]  NPU 0    stream 2"), "{text}");

    let lines = [
        request("a", 0, 10),
        request("a", 20, 10),
        request("b", 40, 10),
        json!({"ph": "X", "pid": 9, "tid": 7, "ts": 60, "dur": 5, "name": "step", "args": {"request_ids": ["a", "b"]}}),
    ];
    let by_request = names_by(&lines, NamesBy::Request);
    assert_eq!(
        groups(&by_request),
        [
            (None, "step", 1),
            (Some("a"), "http.request", 2),
            (Some("b"), "http.request", 1)
        ]
    );
}
