//! Processes, threads and ids: what must stay apart stays apart, what belongs together comes together.

use crate::invocation::RunDir;
use crate::trace::Trace;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeSet;

const LANE: u32 = (1 << 22) + 1;

fn write(dir: &RunDir, process: &Process, name: &str, lines: &[String]) {
    let mut fragment = process.fragment();
    fragment.block(1, 0, &stream(lines));
    fragment.write(&dir.fragments(), name);
}

fn track<'a>(trace: &'a Trace, name: &str) -> (&'a Value, &'a Value) {
    let event = trace.named(name);
    (&event["pid"], &event["tid"])
}

/// Counts the distinct values.
fn different<T: Ord>(values: impl IntoIterator<Item = T>) -> usize {
    values.into_iter().collect::<BTreeSet<_>>().len()
}

fn assert_small_ids(trace: &Trace) {
    for event in trace.shown() {
        for key in ["pid", "tid"] {
            let is_small = event[key].as_u64().is_some_and(|id| id > 0 && id < 1 << 31);
            assert!(is_small, "{key} of {event}");
        }
    }
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
    let trace = dir.merge().trace;
    let names = ["first", "second", "foreign", "other"];
    let pids = names.map(|name| track(&trace, name).0.as_u64());
    assert_eq!(different(pids), 4, "{pids:?}");
    assert_small_ids(&trace);
    // Real ids are kept where they are unambiguous.
    let alone = RunDir::of_block(&first, &[on.span(1000, 5, "first", "")]);
    let trace = alone.merge().trace;
    assert_eq!(track(&trace, "first"), (&42.into(), &43.into()));
}

#[test]
fn two_recorders_of_one_process_are_one_process() {
    let dir = RunDir::new();
    for nonce in [6, 7] {
        let process = Process {
            nonce,
            ..Process::new(42)
        };
        let lines = [
            process
                .thread(43)
                .span(1000 * nonce, 5, &format!("thread {nonce}"), ""),
            process
                .thread(LANE)
                .span(999 * nonce, 900, &format!("lane {nonce}"), ""),
        ];
        write(&dir, &process, &format!("42.{nonce}"), &lines);
    }
    let trace = dir.merge().trace;
    let names = ["thread 6", "thread 7", "lane 6", "lane 7"];
    let [one, other, lane, other_lane] = names.map(|name| track(&trace, name));
    assert_eq!(one, other, "threads are joined by kernel tid");
    assert_eq!([lane.0, other_lane.0], [one.0, one.0]);
    assert_ne!(lane.1, other_lane.1, "lanes carry the nonce");
    assert_ne!(lane.1, one.1);
    assert_small_ids(&trace);
}

#[test]
fn tids_above_32_bits_stay_apart() {
    let dir = RunDir::new();
    // These three are equal in their lower 32 bits.
    let tid = |high: u64| 139_662_951_478_848 + (high << 32);
    let tids = [tid(0), tid(1), tid(5), tid(1), 42, 0];
    let line = |(name, tid)| {
        format!(r#"{{"name":"{name}","ph":"X","ts":5,"dur":9,"pid":42,"tid":{tid}}}"#)
    };
    let names = ["a", "b", "c", "d", "main", "zero"];
    let lines: Vec<String> = names.into_iter().zip(tids).map(line).collect();
    dir.put("42", &stream(&lines));
    let trace = dir.merge().trace;
    let tids = names.map(|name| track(&trace, name).1.as_u64());
    assert_eq!(
        different([tids[0], tids[1], tids[2], tids[4]]),
        4,
        "{tids:?}"
    );
    assert_eq!(tids[1], tids[3]);
    assert_small_ids(&trace);
}

#[test]
fn a_line_without_tid_is_on_the_main_thread() {
    let dir = RunDir::new();
    let line = |more: &str| format!(r#"{{"ph":"X","pid":42,"ts":1,"dur":2,{more}}}"#);
    let lines = [line(r#""name":"a""#), line(r#""name":"b","tid":42"#)];
    dir.put("42", &stream(&lines));
    let trace = dir.merge().trace;
    let tid = trace.named("a").get("tid").unwrap_or(&Value::Null);
    assert!(tid.is_null() || *tid == trace.named("b")["tid"]);
}

/// The id that a viewer joins flow events by.
fn flow_id(trace: &Trace, ts_us: f64) -> &Value {
    let mut found = trace.shown().filter(|event| event["cat"] == "flow");
    let event = found.find(|event| event["ts"] == ts_us).unwrap();
    assert!(
        event["id2"].is_null(),
        "viewers reject id2 on flows: {event}"
    );
    &event["id"]
}

#[test]
fn flow_ids_are_scoped_unless_global() {
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
    let trace = dir.merge().trace;
    let at = |pid: u32, place: u32| flow_id(&trace, f64::from((pid - 10) * 1000 + place));
    for [one, other] in [[(10, 1), (10, 2)], [(20, 1), (20, 2)]] {
        assert_eq!(at(one.0, one.1), at(other.0, other.1));
    }
    assert_eq!(at(10, 3), at(20, 3), "a global id joins processes");
    assert_eq!(at(10, 4), at(20, 4));
    let places = [(10, 1), (20, 1), (10, 3), (10, 4), (10, 5), (20, 5)];
    let ids = places.map(|(pid, place)| at(pid, place).to_string());
    assert_eq!(different(&ids), 6, "{ids:?}");
}

#[test]
fn foreign_ids_are_scoped_by_process_in_every_spelling() {
    let dir = RunDir::new();
    for (pid, offset) in [(10, 0), (20, 1000)] {
        let spellings = [
            ("s", "f", "7"),
            ("b", "e", r#""0x1f""#),
            ("b", "e", r#""req-a""#),
        ];
        let mut lines = Vec::new();
        for (begin, end, id) in spellings {
            for ph in [begin, end] {
                let ts = offset + lines.len();
                lines.push(format!(
                    r#"{{"ph":"{ph}","pid":{pid},"ts":{ts},"name":"n","cat":"flow","id":{id}}}"#
                ));
            }
        }
        dir.put(&pid.to_string(), &stream(&lines));
    }
    let trace = dir.merge().trace;
    let at = |ts: i32| flow_id(&trace, f64::from(ts)).to_string();
    for ts in [0, 2, 4, 1000, 1002, 1004] {
        assert_eq!(at(ts), at(ts + 1), "pair at {ts}");
    }
    assert_eq!(different([0, 2, 4, 1000, 1002, 1004].map(at)), 6);
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
    assert_eq!((ids.len(), different(&ids)), (4, 2), "{ids:?}");
    let is_ours = |id: &&str| id.starts_with("0x") && *id != "0x7";
    assert!(ids.iter().flatten().all(is_ours), "{ids:?}");
    assert_eq!(ids[0], ids[1]);
}
