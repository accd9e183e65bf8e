//! An unmodified worker on the simulated runtime: with the preload alone its kernels, copies and graph replays are slices of the device, and its results are the same.

use crate::ground::{Ended, Ground, SIMULATED, beside, end};
use crate::trace::Trace;

/// 10, 20, 30 and -1, each with one added by 100 kernels and by 3 replays of 5.
const RESULTS: &str = "125\n135\n145\n114\n";

fn ground() -> Ground {
    let ground = Ground::with_simulator();
    let linked = ["-DLINKED", SIMULATED[0], SIMULATED[1]];
    ground.program("worker", &["worker_main.c", "worker.c"], &linked);
    ground.library("libworker.so", "worker.c", &SIMULATED);
    ground.program("loader", &["worker_main.c"], &[] as &[&str]);
    ground
}

/// The worker's end, with the preload and the simulator asked for by name.
fn recorded(
    ground: &Ground,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Ended {
    let mut command = ground.recorded(ground.path(program));
    command
        .args(arguments)
        .env("SA_PROFILE_DEVICE", "sim")
        .env("SA_PROFILE_SIM_LIBRARY", ground.path("libascendcl.so"))
        .envs(variables.iter().copied());
    end(&mut command)
}

/// Asserts that the results are right and nobody said a word.
fn assert_right(ended: &Ended) {
    let expected = (42, RESULTS, "");
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        expected
    );
}

/// The slices of the device by this name.
fn slices(trace: &Trace, name: &str) -> usize {
    let named = trace.recorded().filter(|event| event["name"] == name);
    named
        .filter(|event| !event["args"]["device_wall_us"].is_null())
        .count()
}

fn assert_timed(trace: &Trace) {
    assert_eq!(slices(trace, "sim_add_one"), 100);
    assert_eq!(slices(trace, "MatMulV2"), 100);
    assert_eq!(slices(trace, "aclmdlRIExecuteAsync"), 3);
    assert_eq!(slices(trace, "aclrtMemcpyAsync"), 2);
    let captured = trace
        .recorded()
        .filter(|event| event["args"]["not_timed"] == "captured");
    assert_eq!(captured.count(), 5);
    let rows = trace.process_names();
    assert!(
        rows.iter().any(|name| name.starts_with("SIMULATED NPU 0")),
        "{rows:?}"
    );
}

/// The worker, recorded, whose results are right; its run directory is gone afterwards.
fn timed(ground: &Ground, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Trace {
    assert_right(&recorded(ground, program, arguments, variables));
    let trace = ground.trace();
    std::fs::remove_dir_all(ground.run()).unwrap();
    trace
}

/// Counts the replays that have their kernels.
fn described(trace: &Trace) -> usize {
    let replays = trace
        .recorded()
        .filter(|event| event["name"] == "aclmdlRIExecuteAsync")
        .filter(|event| event["args"]["kernels"][0] == "sim_add_one ×5");
    replays.count()
}

#[test]
fn a_worker_computes_the_same_and_is_timed_once_however_it_calls() {
    let ground = ground();
    assert_right(&end(ground.command(ground.path("worker")).arg("seen")));
    assert_right(&end(ground.preloaded(ground.path("worker")).arg("seen")));
    let trace = timed(&ground, "worker", &["seen"], &[]);
    assert_timed(&trace);
    assert!(described(&trace) > 0);
    // A captured graph has its kernels also where launches are sampled.
    let sampled = [("SA_PROFILE_DEVICE_SAMPLE", "64")];
    let trace = timed(&ground, "worker", &["seen"], &sampled);
    assert_eq!(described(&trace), 3);
    let library = ground.text("libworker.so");
    assert_timed(&timed(&ground, "loader", &[&library, "seen"], &[]));
    // A runtime whose launches cross libraries.
    let old = [("ASCEND_SIM_OLD", "1")];
    assert_timed(&timed(&ground, "worker", &["seen"], &old));
    // A launch that is refused, and tried again.
    let refused = [("ASCEND_SIM_FAULTS", "launch_host_args:3=107017")];
    let trace = timed(&ground, "worker", &["seen"], &refused);
    assert_timed(&trace);
    let failed = trace
        .recorded()
        .filter(|event| event["args"]["error"] == 107_017);
    assert_eq!(failed.count(), 1);
    // CANN 8.0 has no function for a stream's id.
    older(&ground, "aclrtStreamGetId");
    assert_timed(&timed(&ground, "worker", &["seen"], &[]));
}

#[test]
fn a_capture_that_the_hooks_cannot_see_stays_intact() {
    assert_timed(&timed(&ground(), "worker", &["hidden"], &[]));
}

/// Puts a runtime that lacks a function in the place of the whole one.
fn older(ground: &Ground, function: &str) {
    let (whole, older) = (beside("libascendcl.so"), ground.path("libascendcl.so"));
    std::fs::remove_file(&older).unwrap();
    ascendcl::hide::hide(&whole, &older, &[function]).unwrap();
}

#[test]
fn issue_19_a_runtime_whose_constructor_waits_for_a_thread_that_launches_is_not_waited_for() {
    let ground = Ground::new();
    ground.library("libascendcl.so", "quiet_acl.c", &[] as &[&str]);
    let runtime = ["-l:libascendcl.so"];
    ground.library("libwaiting.so", "waiting_acl.c", &runtime);
    ground.program("allocating", &["allocating.c"], &["-l:libascendcl.so"]);
    let mut command = ground.recorded(ground.path("allocating"));
    command
        .env("SA_PROFILE_DEVICE", "sim")
        .env("SA_PROFILE_SIM_LIBRARY", ground.path("libwaiting.so"));
    let ended = end(&mut command);
    let said = "0\n0\n0\n200001\n0\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (42, said), "{ended:?}");
    assert!(ended.stderr.contains("it is no simulated runtime"));
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 6);
}

/// What a thread knows of a stream must not be taken for what is true of the next one with its handle.
#[test]
fn a_launch_is_on_its_own_device_although_handles_come_again() {
    let ground = ground();
    ground.program("again", &["again.c"], &SIMULATED);
    let ended = recorded(&ground, "again", &[], &[("ASCEND_SIM_REUSE", "1")]);
    let said = (ended.code, ended.stdout.as_str(), ended.stderr.as_str());
    assert_eq!(said, (42, "107003\n", ""));
    let trace = ground.trace();
    let mut timed = 0;
    for slice in trace.recorded() {
        let name = slice["name"].as_str().unwrap_or_default();
        if let Some((_, device)) = name.rsplit_once('-')
            && !slice["args"]["device_wall_us"].is_null()
        {
            let row = format!("SIMULATED NPU {device}");
            let is = trace.process_of(slice);
            assert!(is.starts_with(&row), "{name} is on {is}");
            timed += 1;
        }
    }
    assert_eq!(timed, 9 * 20);
}

/// A runtime that does not say that streams go.
#[test]
fn what_is_under_way_in_a_context_goes_with_it() {
    let ground = ground();
    ground.program("context", &["context.c"], &SIMULATED);
    older(&ground, "aclrtRegStreamStateCallback");
    let variables = [("ASCEND_SIM_KERNEL_US", "10000000")];
    let ended = recorded(&ground, "context", &[], &variables);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    let trace = ground.trace();
    let of = |line| trace.last_of_counter("launches", line);
    assert_eq!((of("unresolved"), of("rejected_error")), (Some(5), None));
}
