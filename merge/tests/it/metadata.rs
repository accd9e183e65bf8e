//! What viewers show of processes and threads: last names, main first, real ids in the label.

use crate::invocation::{RunDir, one_block};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

fn write(dir: &RunDir, process: &Process) {
    let on = process.main_thread();
    let name = format!("span of {}", process.pid);
    let lines = [
        process.anchor(900),
        on.metadata("process_name", r#""name":"process""#),
        on.span(5_000_000_000, 5, &name, ""),
        process.end(6_000_000_000),
    ];
    one_block(process, &lines).write(
        &dir.fragments(),
        &format!("{}.{}", process.pid, process.nonce),
    );
}

#[test]
fn main_comes_first_then_by_start() {
    let dir = RunDir::new();
    for (pid, start_time) in [(71, 10), (70, 30), (72, 20)] {
        let process = Process {
            start_time,
            main: pid == 72,
            ..Process::new(pid)
        };
        write(&dir, &process);
    }
    let trace = dir.merge().trace;
    let sort_index = |pid: u32| {
        let pid = &trace.named(&format!("span of {pid}"))["pid"];
        let records = trace.all_named("process_sort_index");
        let last = records.into_iter().rfind(|record| record["pid"] == *pid);
        last.unwrap()["args"]["sort_index"].as_i64().unwrap()
    };
    let order = [72, 71, 70].map(sort_index);
    assert!(order.is_sorted_by(|one, other| one < other), "{order:?}");
    for name in ["sa_fragment", "sa_anchor", "sa_block", "sa_end"] {
        assert!(trace.all_named(name).is_empty(), "{name}");
    }
}

#[test]
fn the_label_gives_the_real_pid_and_says_that_a_ring_is_in_memory() {
    let dir = RunDir::new();
    let again = Process {
        start_time: 3,
        nonce: 3,
        ..Process::new(70)
    };
    for process in [Process::new(70), again, Process::with_ring(71)] {
        write(&dir, &process);
    }
    let trace = dir.merge().trace;
    let labels = trace.all_named("process_labels").into_iter();
    let mut labels: Vec<_> = labels.map(|label| &label["args"]["labels"]).collect();
    labels.sort_unstable_by_key(|label| label.as_str());
    let in_memory = "pid 70, ring in memory";
    assert_eq!(labels, [in_memory, in_memory, "pid 71"]);
}

#[test]
fn a_process_with_names_only_is_shown_and_its_tid_0_is_no_thread() {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(70);
    fragment.line(r#"{"name":"process_name","ph":"M","pid":70,"tid":0,"args":{"name":"idle"}}"#);
    fragment.write_here(&dir.fragments());
    let on = Process::new(71).main_thread();
    dir.put("71", &stream(&[on.span(1000, 5, "a", "")]));
    let merged = dir.merge();
    assert_eq!(merged.report.number("base_ns"), 1000);
    let mut names = merged.trace.process_names().into_values();
    assert!(names.any(|name| name == "idle"));
    assert!(merged.trace.thread_names().is_empty());
}
