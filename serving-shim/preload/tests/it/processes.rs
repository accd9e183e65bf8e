//! Threads, forks and execs of a recorded process, and another recorder in it.

use crate::fakes::{fakes, links};
use c_programs::{Trace, beside, end, preload, skip};

const LAUNCH: &str = "aclrtLaunchKernel";

/// Runs the program and returns its trace; stderr must be empty.
fn trace_of(arguments: &[&str]) -> Trace {
    let ground = fakes();
    let program = ground.program("processes", &["processes.c"], &links());
    let mut command = ground.watched(program);
    command.env("SA_PROFILE_RUN", "one"); // like sa-profile run, because an exec releases the lock by which other processes find the run
    let ended = end(command.args(arguments).env("FAKE_QUIET", "1"));
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    ground.trace()
}

#[test]
fn a_child_records_its_own_launches_also_where_the_runtime_died_with_the_fork() {
    let trace = trace_of(&["fork"]);
    assert_eq!(trace.count(LAUNCH), 5 + 7 + 20 + 3);
    // The second child waits as well.
    assert_eq!(trace.count("aclrtSynchronizeDevice"), 1);
    assert_eq!((trace.processes().len(), trace.threads().len()), (3, 5));
    // Each process has recorded its own reach.
    assert_eq!(trace.named("sa_reach").len(), 3);
    let names = trace.process_names();
    let forked = names.iter().filter_map(|(pid, name)| {
        let of = name.strip_prefix("processes fork ")?;
        Some(of == pid.to_string())
    });
    // The first child was forked before its parent recorded anything.
    let forked: Vec<bool> = forked.collect();
    // Issue 47: the second child is named after its parent.
    assert_eq!(forked, [true], "{names:?}");
}

#[test]
fn an_exec_goes_on_recording_every_launch_of_every_thread_in_the_same_process() {
    let trace = trace_of(&["exec"]);
    assert_eq!(trace.count(LAUNCH), 3 + 8000);
    assert_eq!((trace.processes().len(), trace.threads().len()), (1, 9));
}

#[test]
fn a_process_with_another_recorder_in_it_is_one_process_of_one_thread() {
    let library = beside("libsecond_recorder.so").display().to_string();
    let trace = trace_of(&["library", &library]);
    assert_eq!((trace.count(LAUNCH), trace.count("work")), (100, 100));
    assert_eq!((trace.processes().len(), trace.threads().len()), (1, 1));
}

#[test]
fn sa_profile_run_preloads_the_library() {
    let test = std::env::current_exe().unwrap();
    let sa_profile = test.with_file_name("../sa-profile");
    if !sa_profile.exists() {
        return skip(
            "sa_profile_run_preloads_the_library",
            "sa-profile is not built",
        );
    }
    let ground = fakes();
    let program = ground.program("processes", &["processes.c"], &links());
    let library = format!("--preload={}", preload().display());
    let mut command = ground.command(sa_profile);
    command.args(["run", &library, "-d", "run", "--"]);
    command.arg(program).arg("exec");
    command.envs([
        ("SA_PROFILE_DEVICE", "off"),
        ("SA_PROFILE_DEVICE_SAMPLE", "1"),
    ]);
    assert_eq!(end(command.env("FAKE_QUIET", "1")).code, 42);
    assert_eq!(ground.trace().count(LAUNCH), 8003);
}
