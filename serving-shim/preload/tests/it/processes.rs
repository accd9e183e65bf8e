//! Threads, forks and execs of a recorded process, and another recorder in it.

use crate::ground::{Ground, beside, end};
use crate::trace::Trace;
use std::collections::BTreeSet;

const LAUNCH: &str = "aclrtLaunchKernel";

/// What a run of the program leaves; nothing is on stderr.
fn trace_of(arguments: &[&str]) -> Trace {
    let ground = Ground::with_fakes();
    ground.program("processes", &["processes.c"], &Ground::links());
    let mut command = ground.recorded(ground.path("processes"));
    command.env("SA_PROFILE_RUN", "one"); // as sa-profile run does: an exec gives up the lock by which others find the run
    let ended = end(command.args(arguments).env("FAKE_QUIET", "1"));
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    ground.trace()
}

#[test]
fn every_launch_of_every_thread_is_recorded() {
    let trace = trace_of(&["threads"]);
    assert_eq!(trace.count(LAUNCH), 8000);
    assert_eq!((trace.processes().len(), trace.threads().len()), (1, 8));
}

#[test]
fn a_child_records_its_own_launches_also_where_the_runtime_died_with_the_fork() {
    let trace = trace_of(&["fork"]);
    assert_eq!(trace.count(LAUNCH), 5 + 7 + 20 + 3);
    assert_eq!(
        trace.count("aclrtSynchronizeDevice"),
        1,
        "waits all the same"
    );
    assert_eq!((trace.processes().len(), trace.threads().len()), (3, 5));
    let names = trace.process_names().into_iter();
    let forked: BTreeSet<&str> = names
        .filter_map(|name| name.strip_prefix("processes fork "))
        .collect();
    let pids = trace.processes();
    // The first child was forked before its parent recorded anything.
    assert_eq!(forked.len(), 1, "issue 47: named after its parent");
    assert!(forked.iter().all(|pid| pids.contains(*pid)), "{forked:?}");
}

#[test]
fn an_exec_goes_on_recording_in_the_same_process() {
    let trace = trace_of(&["exec"]);
    assert_eq!(trace.count(LAUNCH), 3 + 8000);
    assert_eq!(trace.processes().len(), 1);
}

#[test]
fn a_process_with_another_recorder_in_it_is_one_process_of_one_thread() {
    let library = beside("libsecond_recorder.so").display().to_string();
    let trace = trace_of(&["library", &library]);
    assert_eq!((trace.count(LAUNCH), trace.count("work")), (100, 100));
    assert_eq!((trace.processes().len(), trace.threads().len()), (1, 1));
}
