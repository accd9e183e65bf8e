//! What viewers show of processes and threads: last names, main first, real ids in the label.

use crate::invocation::RunDir;
use crate::trace::Trace;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

fn write(dir: &RunDir, process: &Process, names: &[&str]) {
    let mut fragment = process.fragment();
    let on = process.main_thread();
    let mut lines: Vec<String> = names
        .iter()
        .map(|name| on.metadata("process_name", &format!(r#""name":"{name}""#)))
        .collect();
    lines.push(on.metadata("thread_name", r#""name":"MainThread""#));
    lines.push(on.span(5_000_000_000, 5, &format!("span of {}", process.pid), ""));
    fragment.block(0, 0, &stream(&lines));
    fragment.write_here(&dir.fragments());
}

/// A metadata value of the process, the last one.
fn sort_index(trace: &Trace, pid: u32) -> i64 {
    let pid = &trace.named(&format!("span of {pid}"))["pid"];
    let mut records = trace
        .all_named("process_sort_index")
        .into_iter()
        .filter(|record| record["pid"] == *pid);
    records
        .next_back()
        .unwrap_or_else(|| panic!("no sort index of {pid}"))["args"]["sort_index"]
        .as_i64()
        .unwrap()
}

#[test]
fn the_last_name_wins() {
    let dir = RunDir::new();
    write(&dir, &Process::new(70), &["starting", "engine-core"]);
    let trace = dir.merge().trace;
    let pid = trace.named("span of 70")["pid"].to_string();
    assert!(
        trace.process_names()[&pid].contains("engine-core"),
        "{:?}",
        trace.process_names()
    );
    let tid = trace.named("span of 70")["tid"].to_string();
    assert_eq!(trace.thread_names()[&format!("{pid}/{tid}")], "MainThread");
}

#[test]
fn a_process_name_on_tid_0_makes_no_thread() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(70);
    fragment.line(r#"{"name":"process_name","ph":"M","pid":70,"tid":0,"args":{"name":"api"}}"#);
    fragment.line(&Process::new(70).main_thread().span(1000, 5, "a", ""));
    fragment.write_here(&dir.fragments());
    let trace = dir.merge().trace;
    assert_eq!(
        trace.process_names().into_values().collect::<Vec<_>>(),
        ["api"]
    );
    assert_eq!(trace.thread_names().len(), 0, "{:?}", trace.thread_names());
}

#[test]
fn main_comes_first_then_by_start() {
    let dir = RunDir::new();
    write(
        &dir,
        &Process {
            start_time: 10,
            ..Process::new(71)
        },
        &["early"],
    );
    write(
        &dir,
        &Process {
            start_time: 30,
            ..Process::new(70)
        },
        &["late"],
    );
    write(
        &dir,
        &Process {
            start_time: 20,
            main: true,
            ..Process::new(72)
        },
        &["main"],
    );
    let trace = dir.merge().trace;
    let order = [72, 71, 70].map(|pid| sort_index(&trace, pid));
    assert!(order[0] < order[1] && order[1] < order[2], "{order:?}");
}

#[test]
fn the_label_gives_the_real_pid() {
    let dir = RunDir::new();
    write(&dir, &Process::new(70), &["a"]);
    write(
        &dir,
        &Process {
            start_time: 3,
            nonce: 3,
            ..Process::new(70)
        },
        &["b"],
    );
    let mut other = Process {
        start_time: 3,
        nonce: 3,
        ..Process::new(70)
    }
    .fragment();
    other.line(&Process::new(70).main_thread().span(2000, 5, "other", ""));
    other.write(&dir.fragments(), "70.3");
    let trace = dir.merge().trace;
    let labels = trace.all_named("process_labels");
    assert!(!labels.is_empty());
    assert!(
        labels
            .iter()
            .all(|label| label["args"]["labels"].as_str().unwrap().contains("70")),
        "{labels:?}"
    );
}

#[test]
fn a_ring_in_memory_is_said_beside_the_name() {
    for (process, label) in [
        (Process::new(70), "pid 70, ring in memory"),
        (Process::with_ring(70), "pid 70"),
    ] {
        let dir = RunDir::new();
        write(&dir, &process, &["a"]);
        let trace = dir.merge().trace;
        let labels = trace.all_named("process_labels");
        assert_eq!(labels[0]["args"]["labels"], label);
    }
}

#[test]
fn lanes_keep_their_names() {
    let dir = RunDir::new();
    let process = Process::new(70);
    let lane = process.thread((1 << 22) + 2);
    let mut fragment = process.fragment();
    fragment.block(
        1,
        0,
        &stream(&[
            lane.metadata("thread_name", r#""name":"requests 2""#),
            lane.span(1000, 5, "http", ""),
        ]),
    );
    fragment.write_here(&dir.fragments());
    let trace = dir.merge().trace;
    let http = trace.named("http");
    assert_eq!(
        trace.thread_names()[&format!("{}/{}", http["pid"], http["tid"])],
        "requests 2"
    );
}

#[test]
fn names_of_the_recording_itself_are_dropped() {
    let dir = RunDir::new();
    let process = Process::new(70);
    let mut fragment = process.fragment();
    fragment.line(&process.anchor(500));
    fragment.block(
        0,
        0,
        &stream(&[
            process.anchor(900),
            process.main_thread().span(1000, 5, "a", ""),
            process.end(2000),
        ]),
    );
    fragment.write_here(&dir.fragments());
    let trace = dir.merge().trace;
    for name in ["sa_fragment", "sa_anchor", "sa_block", "sa_end"] {
        assert!(trace.all_named(name).is_empty(), "{name}");
    }
}

#[test]
fn a_process_with_names_only_is_shown() {
    let dir = RunDir::new();
    let named = Process::new(70)
        .main_thread()
        .metadata("process_name", r#""name":"idle""#);
    dir.put("70", &stream(&[named]));
    dir.put(
        "71",
        &stream(&[Process::new(71).main_thread().span(1000, 5, "a", "")]),
    );
    let merged = dir.merge();
    assert_eq!(merged.report.number("base_ns"), 1000);
    assert!(
        merged
            .trace
            .process_names()
            .into_values()
            .any(|name| name == "idle")
    );
}
