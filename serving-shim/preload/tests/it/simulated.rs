//! An unmodified worker on the simulated runtime: with only the preload, its kernels, copies and graph replays are slices of the device, and its results are the same.

use c_programs::{Ended, Ground, NONE, SIMULATED, Trace, beside, end};

/// The worker's output: 10, 20, 30 and -1, each with one added by 100 kernels and by 3 replays of 5.
const RESULTS: &str = "125\n135\n145\n114\n";

/// Asserts that a program succeeded with this output and empty stderr.
#[track_caller]
fn assert_said(ended: &Ended, stdout: &str) {
    let outcome = (ended.code, &*ended.stdout, &*ended.stderr);
    assert_eq!(outcome, (42, stdout, ""));
}

/// Replaces the runtime with one that lacks a function.
fn older(ground: &Ground, function: &str) {
    let (whole, older) = (beside("libascendcl.so"), ground.path("libascendcl.so"));
    std::fs::remove_file(&older).unwrap();
    ascendcl::hide::hide(&whole, &older, &[function]).unwrap();
}

/// Counts the device's slices with this name.
fn slices(trace: &Trace, name: &str) -> usize {
    let named = trace.with("name", name).into_iter();
    let slices = named.filter(|event| !event["args"]["device_wall_us"].is_null());
    slices.count()
}

fn assert_timed(trace: &Trace) {
    for (name, times) in [
        ("sim_add_one", 100),
        ("MatMulV2", 100),
        ("aclmdlRIExecuteAsync", 3),
        ("aclrtMemcpyAsync", 2),
    ] {
        assert_eq!(slices(trace, name), times, "{name}");
    }
    assert_eq!(trace.with("not_timed", "captured").len(), 5);
    let rows = trace.process_names();
    let is_device = |row: &&str| row.starts_with("SIMULATED NPU 0");
    assert!(rows.values().any(is_device), "{rows:?}");
}

/// Counts the replays that have their kernels.
fn described(trace: &Trace) -> usize {
    let replays = trace.with("name", "aclmdlRIExecuteAsync").into_iter();
    let described = replays.filter(|event| event["args"]["kernels"][0] == "sim_add_one ×5");
    described.count()
}

#[test]
fn a_worker_computes_the_same_and_is_timed_once_however_it_calls() {
    let ground = Ground::with_simulator();
    ground.program("worker", &["worker_main.c", "worker.c"], &SIMULATED);
    ground.library("libworker.so", "worker.c", &SIMULATED);
    ground.program("loader", &["worker_main.c"], &NONE);
    let (worker, library) = (ground.path("worker"), ground.text("libworker.so"));
    assert_said(&end(ground.command(&worker).arg("seen")), RESULTS);
    assert_said(&end(ground.preloaded(&worker).arg("seen")), RESULTS);
    let timed = |program: &str, arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = ground.timed(ground.path(program));
        command.args(arguments).envs(variables.iter().copied());
        assert_said(&end(&mut command), RESULTS);
        ground.merge_and_clear()
    };
    let trace = timed("worker", &["seen"], &[]);
    assert_timed(&trace);
    assert!(described(&trace) > 0);
    // A captured graph has its kernels even if launches are sampled.
    let sampled = [("SA_PROFILE_DEVICE_SAMPLE", "64")];
    assert_eq!(described(&timed("worker", &["seen"], &sampled)), 3);
    assert_timed(&timed("loader", &[&library, "seen"], &[]));
    // A runtime whose launches cross libraries.
    assert_timed(&timed("worker", &["seen"], &[("ASCEND_SIM_OLD", "1")]));
    // A capture that the hooks cannot see.
    assert_timed(&timed("worker", &["hidden"], &[]));
    // A launch that is refused, and tried again.
    let refused = [("ASCEND_SIM_FAULTS", "launch_host_args:3=107017")];
    let trace = timed("worker", &["seen"], &refused);
    assert_timed(&trace);
    assert_eq!(trace.with("error", 107_017).len(), 1);
    // CANN 8.0 has no function for a stream's id.
    older(&ground, "aclrtStreamGetId");
    assert_timed(&timed("worker", &["seen"], &[]));
}

#[test]
fn issue_19_a_runtime_whose_constructor_waits_for_a_thread_that_launches_is_not_waited_for() {
    let ground = Ground::default();
    ground.library("libascendcl.so", "quiet_acl.c", &NONE);
    let runtime = ["-l:libascendcl.so"];
    ground.library("libwaiting.so", "waiting_acl.c", &runtime);
    let program = ground.program("allocating", &["allocating.c"], &runtime);
    let mut command = ground.timed(program);
    let library = ground.path("libwaiting.so");
    let ended = end(command.env("SA_PROFILE_SIM_LIBRARY", library));
    let said = "0\n0\n0\n200001\n0\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (42, said), "{ended:?}");
    assert!(ended.stderr.contains("it is not a simulated runtime"));
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 6);
}

/// Cached knowledge of a stream must not be used for a later stream with the same handle.
#[test]
fn a_launch_is_on_its_own_device_although_handles_come_again() {
    let ground = Ground::with_simulator();
    let program = ground.program("again", &["again.c"], &SIMULATED);
    let ended = end(ground.timed(program).env("ASCEND_SIM_REUSE", "1"));
    assert_said(&ended, "107003\n");
    let trace = ground.trace();
    let rows = trace.process_names();
    let mut timed = 0;
    for slice in trace.recorded() {
        let name = slice["name"].as_str().unwrap_or_default();
        if let Some((_, device)) = name.rsplit_once('-')
            && !slice["args"]["device_wall_us"].is_null()
        {
            let row = rows[&slice["pid"].as_u64().unwrap()];
            let expected = format!("SIMULATED NPU {device}");
            assert!(row.starts_with(&expected), "{name} is on {row}");
            timed += 1;
        }
    }
    assert_eq!(timed, 7 * 20);
}

/// Uses a runtime that does not report destroyed streams.
#[test]
fn what_is_under_way_in_a_context_goes_with_it() {
    let ground = Ground::with_simulator();
    let program = ground.program("context", &["context.c"], &SIMULATED);
    older(&ground, "aclrtRegStreamStateCallback");
    let ended = end(ground
        .timed(program)
        .env("ASCEND_SIM_KERNEL_US", "10000000"));
    assert_said(&ended, "");
    let trace = ground.trace();
    let last = |line: &str| {
        let counters = trace.named("launches").into_iter();
        counters
            .filter_map(|event| event["args"][line].as_u64())
            .next_back()
    };
    assert_eq!(last("unresolved"), Some(5));
    assert_eq!(last("rejected_error"), None);
}
