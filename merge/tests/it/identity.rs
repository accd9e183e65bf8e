//! Processes, threads and ids: what must stay apart stays apart, what belongs together comes together.

use crate::invocation::RunDir;
use crate::trace::Trace;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;

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

fn assert_small_ids(trace: &Trace) {
    for event in trace.shown() {
        for key in ["pid", "tid"] {
            let id = event[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} of {event}"));
            assert!(id > 0 && id < 1 << 31, "{key} of {event}");
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
    write(
        &dir,
        &first,
        "42",
        &[first.main_thread().span(1000, 5, "first", "")],
    );
    write(
        &dir,
        &second,
        "42.7",
        &[second.main_thread().span(2000, 5, "second", "")],
    );
    dir.put(
        "42.8",
        format!("{}\n", first.main_thread().span(3000, 5, "foreign", "")).as_bytes(),
    );
    let trace = dir.merge().trace;
    let pids = ["first", "second", "foreign"].map(|name| track(&trace, name).0.clone());
    assert!(
        pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2],
        "{pids:?}"
    );
    assert_small_ids(&trace);
}

#[test]
fn real_ids_are_kept_where_unambiguous() {
    let dir = RunDir::new();
    let process = Process::new(42);
    write(
        &dir,
        &process,
        "42",
        &[process.thread(43).span(1000, 5, "a", "")],
    );
    let trace = dir.merge().trace;
    assert_eq!(track(&trace, "a"), (&42.into(), &43.into()));
}

#[test]
fn two_recorders_of_one_process_are_one_process() {
    let dir = RunDir::new();
    let first = Process::new(42);
    let second = Process {
        nonce: 7,
        ..Process::new(42)
    };
    write(
        &dir,
        &first,
        "42",
        &[
            first.thread(43).span(1000, 5, "a", ""),
            first.thread(LANE).span(1000, 900, "lane of the first", ""),
        ],
    );
    write(
        &dir,
        &second,
        "42.7",
        &[
            second.thread(43).span(2000, 5, "b", ""),
            second
                .thread(LANE)
                .span(1500, 900, "lane of the second", ""),
        ],
    );
    let trace = dir.merge().trace;
    assert_eq!(
        track(&trace, "a"),
        track(&trace, "b"),
        "threads are joined by kernel tid"
    );
    let (one, two) = (
        track(&trace, "lane of the first"),
        track(&trace, "lane of the second"),
    );
    assert_eq!(one.0, two.0);
    assert_ne!(one.1, two.1, "lanes carry the nonce");
    assert_ne!(one.1, track(&trace, "a").1);
    assert_small_ids(&trace);
}

#[test]
fn tids_above_32_bits_stay_apart() {
    let dir = RunDir::new();
    let line = |tid: u64, name: &str| {
        format!(
            r#"{{"name":"{name}","cat":"c","ph":"X","ts":5,"dur":9,"pid":42,"tid":{tid},"args":{{}}}}"#
        )
    };
    // These three are equal in their lower 32 bits.
    let tids = [
        139_662_951_478_848,
        139_662_951_478_848 + (1 << 32),
        139_662_951_478_848 + (5 << 32),
    ];
    let lines = [
        line(tids[0], "a"),
        line(tids[1], "b"),
        line(tids[2], "c"),
        line(tids[1], "d"),
        line(42, "main"),
        line(0, "zero"),
    ];
    dir.put("42", &stream(&lines));
    let trace = dir.merge().trace;
    let mut seen: Vec<_> = ["a", "b", "c", "main"]
        .iter()
        .map(|name| track(&trace, name).1.as_u64().unwrap())
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(track(&trace, "b").1, track(&trace, "d").1);
    assert_small_ids(&trace);
}

#[test]
fn a_line_without_tid_is_on_the_main_thread() {
    let dir = RunDir::new();
    dir.put("42", b"{\"ph\":\"X\",\"pid\":42,\"ts\":1,\"dur\":2,\"name\":\"a\"}\n{\"ph\":\"X\",\"pid\":42,\"tid\":42,\"ts\":7,\"dur\":2,\"name\":\"b\"}\n");
    let trace = dir.merge().trace;
    assert_eq!(
        trace.named("a").get("tid").unwrap_or(&42.into()),
        trace.named("b").get("tid").unwrap()
    );
}

/// The id that a viewer joins flow events by.
fn flow_id(trace: &Trace, ts_us: f64) -> &Value {
    let found: Vec<_> = trace
        .shown()
        .filter(|event| event["cat"] == "flow" && event["ts"] == ts_us)
        .collect();
    assert_eq!(found.len(), 1, "flow at {ts_us}");
    assert!(
        found[0].get("id2").is_none(),
        "viewers reject id2 on flows: {}",
        found[0]
    );
    &found[0]["id"]
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
    assert_eq!(at(10, 1), at(10, 2));
    assert_eq!(at(20, 1), at(20, 2));
    assert_eq!(at(10, 3), at(20, 3), "a global id joins processes");
    assert_eq!(at(10, 4), at(20, 4));
    let different = [
        at(10, 1),
        at(20, 1),
        at(10, 3),
        at(10, 4),
        at(10, 5),
        at(20, 5),
    ];
    for (index, id) in different.iter().enumerate() {
        assert!(!different[..index].contains(id), "{different:?}");
    }
}

#[test]
fn foreign_ids_are_scoped_by_process_in_every_spelling() {
    let dir = RunDir::new();
    for (pid, offset) in [(10, 0), (20, 1000)] {
        let event = |ph: &str, id: &str, ts: u32| {
            format!(
                r#"{{"ph":"{ph}","pid":{pid},"tid":{pid},"ts":{},"name":"n","cat":"flow","id":{id}}}"#,
                offset + ts
            )
        };
        let lines = [
            event("s", "7", 0),
            event("f", "7", 1),
            event("b", "\"0x1f\"", 2),
            event("e", "\"0x1f\"", 3),
            event("b", "\"req-a\"", 4),
            event("e", "\"req-a\"", 5),
        ];
        dir.put(&pid.to_string(), &stream(&lines));
    }
    let trace = dir.merge().trace;
    for pair in [0, 2, 4] {
        let at = |ts: i32| flow_id(&trace, f64::from(ts));
        assert_eq!(at(pair), at(pair + 1), "pair at {pair}");
        assert_ne!(at(pair), at(1000 + pair), "pair at {pair}");
    }
    assert_ne!(flow_id(&trace, 2.0), flow_id(&trace, 4.0));
}

#[test]
fn an_event_of_another_pid_in_a_foreign_fragment_is_another_process() {
    let mut fragment = Fragment::foreign(10);
    fragment.line(&Process::new(10).main_thread().span(1000, 5, "mine", ""));
    fragment.line(&Process::new(11).main_thread().span(1000, 5, "other", ""));
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    let trace = dir.merge().trace;
    assert_ne!(track(&trace, "mine").0, track(&trace, "other").0);
}

#[test]
fn flows_bound_by_an_id_of_any_phase_stay_within_their_process() {
    let dir = crate::invocation::RunDir::new();
    for pid in [41, 42] {
        let line = |ts: u32, way: &str| {
            format!(
                "{{\"name\":\"a\",\"cat\":\"b\",\"ph\":\"X\",\"ts\":{ts},\"dur\":5,\"pid\":{pid},\"tid\":1,\"bind_id\":\"0x7\",\"{way}\":true}}\n"
            )
        };
        dir.put(
            &pid.to_string(),
            (line(10, "flow_out") + &line(20, "flow_in")).as_bytes(),
        );
    }
    let text = String::from_utf8(dir.merge().bytes).unwrap();
    let ids: Vec<_> = text
        .split("\"bind_id\":")
        .skip(1)
        .map(|rest| &rest[..16])
        .collect();
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (4, 2), "{ids:?}");
    assert!(
        ids.iter()
            .all(|id| id.starts_with("\"0x") && !id.starts_with("\"0x7\""))
    );
}
