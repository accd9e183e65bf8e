//! The simulated runtime against its rules: the programs in conformance/, built with the C compiler against our own declarations, one process for each case.

mod program;

use program::{library, program};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// A run of one case with these settings.
fn command(case: &str, settings: &[(&str, &str)]) -> Command {
    let mut command = program::conformance(case);
    command.envs(settings.iter().copied());
    command
}

fn run(case: &str, settings: &[(&str, &str)]) -> Output {
    let output = command(case, settings).output().expect("a run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {}\n{said}", output.status);
    assert_eq!(said, "", "{case}");
    output
}

/// A test for each case: its name, the case, its settings.
macro_rules! cases {
    ($($test:ident: $case:literal $([$name:literal = $value:literal])*;)*) => {
        $(#[test]
        fn $test() {
            run($case, &[$(($name, $value)),*]);
        })*
    };
}

cases! {
    calls_need_a_context_and_streams_of_it: "context";
    initialisation_is_once_and_tells_who_asked: "init";
    devices_are_those_that_are_visible: "devices" ["ASCEND_RT_VISIBLE_DEVICES" = "5,2"] ["ASCEND_SIM_PHYSICAL_BASE" = "10"];
    listeners_are_told_of_devices_and_streams: "listeners";
    streams_run_in_order_beside_the_host: "streams" ["ASCEND_SIM_STREAMS" = "4"] ["ASCEND_SIM_KERNELS" = "slow=150000"];
    nobody_misses_a_wake_up: "crowd" ["ASCEND_SIM_DEPTH" = "4"] ["ASCEND_SIM_SPIN_US" = "0"] ["ASCEND_SIM_KERNEL_US" = "0"];
    events_answer_as_the_vendors_do: "events" ["ASCEND_SIM_KERNELS" = "slow=150000"];
    a_stream_waits_for_another: "stream_waits" ["ASCEND_SIM_KERNELS" = "slow=150000"];
    nobody_waits_for_a_stream_that_is_gone: "stream_dropped";
    each_device_has_a_clock_of_its_own: "device_clock" ["ASCEND_SIM_CLOCK_OFFSET_S" = "0=7200,1=3600"];
    elapsed_time_is_signed_at_20_ns: "elapsed" ["ASCEND_SIM_KERNELS" = "k=5000"];
    elapsed_time_wraps_at_1_ns: "elapsed_wraps" ["ASCEND_SIM_KERNELS" = "k=5000"] ["ASCEND_SIM_SOC" = "950"];
    a_record_waits_for_a_hardware_event: "event_pool" ["ASCEND_SIM_EVENTS" = "2"];
    kernels_have_names: "kernels";
    every_launch_does_its_work_once: "launches";
    memory_is_checked: "memory";
    callbacks_run_in_order_of_their_stream: "callbacks";
    collectives_are_work_of_a_stream: "collectives";
    a_capture_ignores_timed_events: "capture";
    looking_at_a_captured_stream_breaks_the_capture: "capture_broken";
    a_captures_mode_says_who_may_copy: "capture_modes";
    a_capture_spreads_over_events: "capture_streams";
    a_capture_ends_with_the_stream_it_began_on: "capture_dropped";
    a_graph_runs_with_one_call: "replay" ["ASCEND_SIM_KERNELS" = "k=20000"];
    a_capture_may_begin_unseen: "capture_unseen";
    a_group_of_kernels_can_be_updated: "task_group" ["ASCEND_SIM_KERNELS" = "long=30000"] ["ASCEND_SIM_KERNEL_US" = "0"];
    the_last_error_is_the_threads_and_stays: "last_error";
    the_last_task_is_the_threads_and_counts_in_its_stream: "last_task" ["ASCEND_SIM_SOC" = "910b"];
    the_last_task_of_a_newer_chip_counts_in_the_process: "last_task" ["ASCEND_SIM_SOC" = "950"];
    calls_fail_on_demand: "faults_of_calls" ["ASCEND_SIM_FAULTS" = "launch_host_args:2=107017,event_create:2+=207007,memcpy:1=507013"];
    a_failed_kernel_leaves_its_error: "fault_of_a_kernel" ["ASCEND_SIM_FAULTS" = "kernel:2=507015"];
    a_lost_device_hangs_nobody: "fault_of_a_device" ["ASCEND_SIM_FAULTS" = "device_lost:3=507010"] ["ASCEND_SIM_KERNELS" = "k=20000"];
    a_completion_may_be_seen_late: "slow_completion" ["ASCEND_SIM_FAULTS" = "slow_completion:1=300000"];
    records_of_kernels_come_late_and_in_the_clients_buffers: "mspti" ["ASCEND_SIM_KERNELS" = "k=100"];
    mspti_is_refused_on_demand: "mspti_refused" ["ASCEND_SIM_FAULTS" = "mspti_subscribe:1=6,mspti_enable:1=4"];
    launches_stay_inside_the_library: "through_rt_never";
    launches_of_an_old_cann_cross_to_the_rt_level: "through_rt_when_old" ["ASCEND_SIM_OLD" = "1"];
}

#[test]
fn a_wrong_setting_ends_the_program() {
    let output = command("init", &[("ASCEND_SIM_FAULTS", "lunch:1=2")])
        .output()
        .expect("a run");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("ascend-sim: ASCEND_SIM_FAULTS: expected"),
        "{said}"
    );
}

#[test]
fn what_breaks_the_vendors_mspti_ends_the_program() {
    for (case, why) in [
        ("mspti_called_late", "MSPTI was called after"),
        ("mspti_without_a_buffer", "had no buffer"),
    ] {
        let output = command(case, &[]).output().expect("a run");
        assert!(!output.status.success(), "{case}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{case}: {said}");
    }
}

/// What the loader finds of a function in a library that a program loads for itself.
fn found(path: &Path, function: &str) -> String {
    static LOADER: LazyLock<PathBuf> = LazyLock::new(|| program("loader", &["loader.c"], false));
    let output = Command::new(&*LOADER)
        .arg(path)
        .arg(function)
        .output()
        .expect("a run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_library_loaded_for_itself_is_found_by_handle_and_by_name_alone() {
    let expected = "handle yes, default no, next no, soname yes\n";
    assert_eq!(found(&library(), "aclrtSetDevice"), expected);
    let folder = tempfile::tempdir().expect("a folder");
    for face in [
        "libacl_rt.so",
        "libruntime.so",
        "libhccl.so",
        "libascend_hal.so",
    ] {
        let link = folder.path().join(face);
        std::os::unix::fs::symlink(library(), &link).expect("a link");
        assert_eq!(found(&link, "halGetDeviceInfo"), expected, "{face}");
    }
}

#[test]
fn the_library_is_linked_as_the_vendors_are() {
    let output = Command::new("readelf").arg("-d").arg(library()).output();
    let output = output.expect("readelf, of binutils");
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in ["Library soname: [libascendcl.so]", "SYMBOLIC", "NODELETE"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn functions_can_be_taken_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let older = folder.path().join("libascendcl.so");
    ascendcl::hide::hide(
        &library(),
        &older,
        &["aclrtGetFunctionName", "aclmdlRIGetId"],
    )
    .expect("a copy");
    for (function, there) in [
        ("aclrtGetFunctionName", "no"),
        ("aclmdlRIGetId", "no"),
        ("aclmdlRIGetName", "yes"),
        ("aclrtLaunchKernel", "yes"),
    ] {
        assert!(
            found(&older, function).starts_with(&format!("handle {there},")),
            "{function}"
        );
    }
    let error = ascendcl::hide::hide(&library(), &older, &["aclrtNoSuch"]).unwrap_err();
    assert!(error.to_string().contains("aclrtNoSuch"));
}

#[test]
fn endless_work_leaves_its_truth_behind_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("truth.jsonl");
    let truth = path.display().to_string();
    let settings = [
        ("ASCEND_SIM_TRUTH", truth.as_str()),
        ("ASCEND_SIM_TRUTH_THROUGH", "1"),
        ("ASCEND_SIM_KERNELS", "zero=0"),
    ];
    let mut child = command("endless", &settings)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let text = std::fs::read_to_string(&path).expect("the truth");
    assert!(text.lines().count() >= 100, "what had run when it said so");
    let whole = text.lines().filter(|line| line.ends_with('}'));
    assert_eq!(
        whole.count(),
        text.lines().count(),
        "each write is a whole line"
    );
}
