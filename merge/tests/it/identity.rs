//! Processes, threads and ids: what must stay apart stays apart, and what belongs together comes together, as in the naive reader.

use crate::invocation::{RunDir, one_block};
use crate::oracle;
use crate::trace::{Trace, assert_same};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use std::collections::BTreeSet;

const LANE: u32 = (1 << 22) + 1;

fn write(dir: &RunDir, process: &Process, name: &str, lines: &[String]) {
    one_block(process, lines).write(&dir.fragments(), name);
}

/// Merges, and asserts that the trace has the processes, threads and ids of the naive reader, by small numbers.
fn merged_as_naive(dir: &RunDir) -> Trace {
    let trace = dir.merge().trace;
    let expected = oracle::read(&dir.fragments()).events;
    assert_same(&expected, &trace.comparable(), "by the naive reader");
    for event in trace.shown() {
        for key in ["pid", "tid"] {
            let is_small = event[key].as_u64().is_some_and(|id| id > 0 && id < 1 << 31);
            assert!(is_small, "{key} of {event}");
        }
        assert!(event["id2"].is_null(), "viewers reject it: {event}");
    }
    trace
}

/// Counts the distinct values that events have for a key.
fn different(trace: &Trace, key: &str) -> usize {
    let values = trace.shown().map(|event| event[key].to_string());
    values.collect::<BTreeSet<_>>().len()
}

#[test]
fn the_same_pid_in_two_processes() {
    let dir = RunDir::new();
    let first = Process::new(42);
    let second = Process {
        start_time: 99,
        nonce: 7,
        ..Process::new(42)
    };
    let on = first.thread(43);
    write(&dir, &first, "42", &[on.span(1000, 5, "first", "")]);
    write(&dir, &second, "42.7", &[on.span(2000, 5, "second", "")]);
    let other = Process::new(11).main_thread();
    let foreign = [
        on.span(3000, 5, "foreign", ""),
        other.span(9, 5, "other", ""),
    ];
    dir.put("42.8", &stream(&foreign));
    assert_eq!(different(&merged_as_naive(&dir), "pid"), 4);
    // Real ids are kept where they are unambiguous.
    let alone = RunDir::of_block(&first, &[on.span(1000, 5, "first", "")]);
    let span = merged_as_naive(&alone).named("first").clone();
    assert_eq!([&span["pid"], &span["tid"]], [42, 43]);
}

#[test]
fn two_recorders_of_one_process_share_its_threads_and_have_lanes_of_their_own() {
    let dir = RunDir::new();
    for nonce in [6, 7] {
        let process = Process {
            nonce,
            ..Process::new(42)
        };
        let (thread, lane) = (process.thread(43), process.thread(LANE));
        let lines = [
            thread.span(1000 * nonce, 5, &format!("thread {nonce}"), ""),
            lane.span(999 * nonce, 900, &format!("lane {nonce}"), ""),
        ];
        write(&dir, &process, &format!("42.{nonce}"), &lines);
    }
    let trace = merged_as_naive(&dir);
    assert_eq!(["pid", "tid"].map(|key| different(&trace, key)), [1, 3]);
}

/// Some tids are equal in their lower 32 bits. The main thread has the tid 42, the tid 0, and lines without a tid.
#[test]
fn tids_of_any_size_stay_apart() {
    let tid = |high: u64| 139_662_951_478_848 + (high << 32);
    let tids = [tid(0), tid(1), tid(5), tid(1), 42, 0];
    let line =
        |(nth, tid)| format!(r#"{{"name":"{nth}","ph":"X","ts":5,"dur":9,"pid":42,"tid":{tid}}}"#);
    let mut lines: Vec<String> = tids.iter().enumerate().map(line).collect();
    lines.push(r#"{"name":"no tid","ph":"X","ts":5,"dur":9,"pid":42}"#.into());
    let dir = RunDir::of_lines("42", &lines);
    assert_eq!(different(&merged_as_naive(&dir), "tid"), 4);
}

#[test]
fn flow_ids_are_scoped_by_process_unless_global_in_every_spelling() {
    let dir = RunDir::new();
    for pid in [10, 20] {
        let process = Process::new(pid);
        let ts = |place: u64| u64::from(pid) * 1_000_000 + place * 1000;
        let on = process.main_thread();
        let lines = [
            on.span(ts(0), 900_000, "around", ""),
            on.flow("s", ts(1), "local", 1),
            on.flow("f", ts(2), "local", 1),
            on.flow(if pid == 10 { "s" } else { "f" }, ts(3), "global", 1),
            on.flow("s", ts(4), "global", u64::MAX),
            on.flow("s", ts(5), "local", u64::MAX),
        ];
        write(&dir, &process, &pid.to_string(), &lines);
    }
    for pid in [30, 40] {
        let spellings = [("sf", "7"), ("be", r#""0x1f""#), ("be", r#""req-a""#)];
        let mut lines = Vec::new();
        for (phases, id) in spellings {
            for ph in phases.chars() {
                let ts = 1000 * pid + lines.len();
                lines.push(format!(
                    r#"{{"ph":"{ph}","pid":{pid},"ts":{ts},"name":"n","cat":"flow","id":{id}}}"#
                ));
            }
        }
        dir.put(&pid.to_string(), &stream(&lines));
    }
    // Two local ones in each process of ours and two global ones, three in each process of others, and none for spans.
    assert_eq!(different(&merged_as_naive(&dir), "id"), 6 + 6 + 1);
}

#[test]
fn flows_bound_by_an_id_of_any_phase_stay_within_their_process() {
    let dir = RunDir::new();
    for pid in [41, 42] {
        let line = |ts: u32, way: &str| {
            format!(
                r#"{{"name":"a","ph":"X","ts":{ts},"dur":5,"pid":{pid},"bind_id":"0x7","{way}":true}}"#
            )
        };
        let lines = [line(10, "flow_out"), line(20, "flow_in")];
        dir.put(&pid.to_string(), &stream(&lines));
    }
    let trace = dir.merge().trace;
    let ids: Vec<_> = trace
        .shown()
        .map(|event| event["bind_id"].as_str())
        .collect();
    assert_eq!((ids.len(), different(&trace, "bind_id")), (4, 2), "{ids:?}");
    let is_ours = |id: &&str| id.starts_with("0x") && *id != "0x7";
    assert!(ids.iter().flatten().all(is_ours), "{ids:?}");
    assert_eq!(ids[0], ids[1]);
}
