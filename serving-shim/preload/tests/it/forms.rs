//! Each interposed function in each form in which a program can call it: what the program sees is the same with the preload, recording or not, and what is recorded is exactly what was
//! launched.

use crate::ground::{Ended, Ground, end, preload};
use std::collections::BTreeMap;
use std::process::Command;

/// What is recorded of each round: category, name, how often.
const ROUND: &[(&str, &str, usize)] = &[
    ("comm", "HcclAllGather", 1),
    ("comm", "HcclAllGatherV", 1),
    ("comm", "HcclAllReduce", 1),
    ("comm", "HcclAlltoAll", 1),
    ("comm", "HcclAlltoAllV", 1),
    ("comm", "HcclAlltoAllVC", 1),
    ("comm", "HcclBarrier", 1),
    ("comm", "HcclBatchSendRecv", 1),
    ("comm", "HcclBroadcast", 1),
    ("comm", "HcclRecv", 1),
    ("comm", "HcclReduce", 1),
    ("comm", "HcclReduceScatter", 1),
    ("comm", "HcclReduceScatterV", 1),
    ("comm", "HcclScatter", 1),
    ("comm", "HcclSend", 1),
    ("device", "aclrtSetDevice", 1),
    ("graph", "aclmdlRIExecute", 1),
    ("graph", "aclmdlRIExecuteAsync", 1),
    ("kernel", "AicpuOp", 1),
    ("kernel", "Asked", 4),
    ("kernel", "even text", 4), // the operators, and rtAicpuKernelLaunchExWithArgs
    ("kernel", "odd text", 2),  // aclopExecuteV2 and rtKernelLaunchFwk
    ("kernel", "rtFftsPlusTaskLaunch", 1),
    ("kernel", "rtFftsPlusTaskLaunchWithFlag", 1),
    ("kernel", "rtFusionLaunch", 1),
    ("kernel", "rtKernelLaunch", 1),
    ("kernel", "rtKernelLaunchEx", 1),
    ("kernel", "rtKernelLaunchWithFlag", 1),
    ("kernel", "rtKernelLaunchWithFlagV2", 1),
    ("kernel", "rtKernelLaunchWithHandle", 1),
    ("kernel", "rtKernelLaunchWithHandleV2", 1),
    ("kernel", "rtLaunchKernelByFuncHandle", 1),
    ("kernel", "rtLaunchKernelByFuncHandleV2", 1),
    ("kernel", "rtLaunchKernelByFuncHandleV3", 1),
    ("kernel", "rtVectorCoreKernelLaunch", 1),
    ("kernel", "rtVectorCoreKernelLaunchWithHandle", 1),
    ("kernel", "rtsLaunchCpuKernel", 1),
    ("kernel", "rtsLaunchKernelWithConfig", 1),
    ("kernel", "rtsLaunchKernelWithDevArgs", 1),
    ("kernel", "rtsLaunchKernelWithHostArgs", 1),
    ("memcpy", "aclrtCmoAsync", 1),
    ("memcpy", "aclrtMemcpy", 1),
    ("memcpy", "aclrtMemcpyAsync", 1),
    ("memcpy", "aclrtMemcpyAsyncWithCondition", 1),
    ("memcpy", "aclrtMemcpyBatch", 1),
    ("memcpy", "aclrtMemcpyBatchAsync", 1),
    ("memcpy", "aclrtMemset", 1),
    ("memcpy", "aclrtMemsetAsync", 1),
    ("memcpy", "aclrtReduceAsync", 1),
    ("memcpy", "aclrtValueWrite", 1),
    ("model", "aclmdlExecute", 1),
    ("model", "aclmdlExecuteAsync", 1),
    ("model", "aclmdlExecuteAsyncV2", 1),
    ("model", "aclmdlExecuteV2", 1),
    ("model", "rtModelExecute", 1),
    ("sync", "aclrtLaunchHostFunc", 1),
    ("sync", "aclrtSynchronizeDevice", 1),
    ("sync", "aclrtSynchronizeEvent", 1),
    ("sync", "aclrtSynchronizeStream", 1),
    ("sync", "aclrtSynchronizeStreamWithTimeout", 1),
    ("sync", "aclrtValueWait", 1),
];
/// Waits and the like among them.
const WAITS: [&str; 13] = [
    "aclrtSetDevice",
    "aclrtLaunchHostFunc",
    "aclrtValueWait",
    "aclmdlRIExecute",
    "aclrtMemcpy",
    "aclrtMemcpyBatch",
    "aclrtMemset",
    "aclmdlExecute",
    "aclmdlExecuteV2",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeStream",
    "aclrtSynchronizeStreamWithTimeout",
];
/// Rounds in all, and those in which the real functions fail.
const ROUNDS: usize = 4;
const BAD_ROUNDS: usize = 2;

fn expected() -> BTreeMap<(String, String), usize> {
    let counted = |(category, name, count): &(&str, &str, usize)| {
        (((*category).to_owned(), (*name).to_owned()), count * ROUNDS)
    };
    ROUND.iter().map(counted).collect()
}

/// The adversary's ground: the fakes, the program, and a client library linked with them.
fn ground() -> Ground {
    let ground = Ground::with_fakes();
    let links = Ground::links();
    let direct = [vec!["-DDIRECT".to_owned()], links].concat();
    ground.library("libclient.so", "calls.c", &direct);
    ground.program("adversary", &["adversary.c", "calls.c"], &[] as &[&str]);
    ground.program("direct", &["direct.c", "adversary.c"], &direct);
    ground
}

/// The same command three times: plain, with the preload, and recording. What the program sees never differs.
fn compared(ground: &Ground, arguments: impl Fn(&mut Command), program: &str) -> Ended {
    let run = |mut command: Command| {
        arguments(&mut command);
        end(&mut command)
    };
    let program = ground.path(program);
    let plain = run(ground.command(&program));
    assert_eq!(
        (plain.code, plain.stderr.as_str()),
        (42, "done\n"),
        "{plain:?}"
    );
    let real = plain.stdout.matches("  real ").count();
    assert_eq!(
        real,
        97 * ROUNDS,
        "every real function is called once in each round"
    );
    assert_eq!(run(ground.preloaded(&program)), plain, "preloaded");
    let recorded = run(ground.recorded(&program));
    assert_eq!(recorded, plain, "recorded");
    plain
}

fn assert_recorded(ground: &Ground) {
    let trace = ground.trace();
    let mut counts = trace.counts();
    counts.retain(|(category, _), _| category != "mstx" && category != "sa_profile");
    let expected = expected();
    let mut missing = expected.clone();
    missing.retain(|key, count| counts.get(key) != Some(count));
    counts.retain(|key, count| expected.get(key) != Some(count));
    assert_eq!(
        counts, missing,
        "recorded (left) and expected where they differ"
    );
    let all: usize = ROUND.iter().map(|(_, _, count)| count).sum();
    let failed = trace
        .recorded()
        .filter(|event| !event["args"]["error"].is_null());
    assert_eq!(failed.count(), all * BAD_ROUNDS, "what failed says so");
    let launches = trace
        .recorded()
        .filter(|event| !event["args"]["launch"].is_null());
    assert_eq!(launches.count(), (all - WAITS.len()) * ROUNDS);
    // A profiler that fails to start pauses for nothing, and one that fails to stop goes on.
    for name in ["device_timing_paused", "device_timing_resumed"] {
        assert_eq!(trace.count(name), ROUNDS, "{name}");
    }
    let marks = trace.of_category("mstx").len();
    assert_eq!(marks, 2 * ROUNDS, "no range ends with the id it was given");
}

#[test]
fn direct_calls_are_passed_through_and_recorded() {
    let ground = ground();
    compared(
        &ground,
        |command| {
            command.arg("direct");
        },
        "direct",
    );
    assert_recorded(&ground);
}

#[test]
fn calls_from_a_library_loaded_locally_are_passed_through_and_recorded() {
    let ground = ground();
    let client = ground.text("libclient.so");
    compared(
        &ground,
        |command| {
            command.args(["local", &client]);
        },
        "adversary",
    );
    assert_recorded(&ground);
}

#[test]
fn calls_found_in_the_global_scope_are_passed_through_and_recorded() {
    let ground = ground();
    let fakes = ground.fakes();
    compared(
        &ground,
        |command| {
            command.arg("default").args(&fakes);
        },
        "adversary",
    );
    assert_recorded(&ground);
}

#[test]
fn calls_found_through_a_handle_are_passed_through_and_recorded() {
    let ground = ground();
    let fakes = ground.fakes();
    compared(
        &ground,
        |command| {
            command.arg("handle").args(&fakes);
        },
        "adversary",
    );
    assert_recorded(&ground);
}

/// What the program of `handles.c` says; `first` is who it finds behind the vendor's handle.
fn found_by_handles(first: &str) -> String {
    format!(
        "{first} libother.so\nlaunched 0 0\nsame again 1\nnot wrapped libascendcl.so\nnowhere 0 is said\nlacking 0 is said\nlibc libc.so.6\ndlsym 1\n"
    )
}

#[test]
fn only_the_function_behind_a_wrapper_is_taken_for_it() {
    let ground = Ground::with_fakes();
    let options = ["-DPART=ACL", "-Wl,-Bsymbolic", "-lfake_answer"];
    ground.library("libother.so", "fake_acl.c", &options);
    ground.program("handles", &["handles.c"], &[] as &[&str]);
    let libraries = ["libascendcl.so", "libother.so"].map(|name| ground.text(name));
    let run = |mut command: Command| end(command.args(&libraries).env("FAKE_QUIET", "1"));
    let program = ground.path("handles");
    let plain = run(ground.command(&program));
    assert_eq!(
        (plain.code, plain.stdout),
        (42, found_by_handles("libascendcl.so"))
    );
    let recorded = run(ground.recorded(&program));
    let expected = found_by_handles("libsa_profile_preload.so");
    assert_eq!((recorded.code, recorded.stdout), (42, expected));
    // That of the other library is its own business.
    assert_eq!(ground.trace().of_category("kernel").len(), 1);
}

#[test]
fn a_question_binds_no_wrapper_to_a_library_that_is_not_the_vendors() {
    let ground = Ground::with_fakes();
    ground.library("libstub.so", "stub.c", &[] as &[&str]);
    ground.library("libplugin.so", "waits.c", &["-l:libascendcl.so"]);
    ground.program("asked", &["asked_first.c"], &[] as &[&str]);
    let libraries = ["libstub.so", "libplugin.so"].map(|name| ground.text(name));
    let run = |mut command: Command| end(command.args(&libraries).env("FAKE_QUIET", "1"));
    let program = ground.path("asked");
    let plain = run(ground.command(&program));
    assert_eq!((plain.code, &*plain.stdout), (42, "other 11\nvendor 0\n"));
    assert_eq!(run(ground.recorded(&program)), plain);
    assert_eq!(ground.trace().count("aclrtSynchronizeDevice"), 1);
}

/// `aclmdlRIUpdate` came later than CANN 8.5: no program may take it for there because of us.
#[test]
fn a_function_that_not_every_cann_has_is_seen_by_those_who_ask_for_it() {
    let ground = Ground::with_fakes();
    ground.program("asked", &["asked_only.c"], &[] as &[&str]);
    let run = |mut command: Command| end(command.arg(ground.text("libascendcl.so")));
    let program = ground.path("asked");
    let plain = run(ground.command(&program));
    let first = "before 0\nsaid 1\nlocal 0\n  real aclmdlRIUpdate: 0x5a";
    assert!(
        plain.code == 42 && plain.stdout.starts_with(first),
        "{plain:?}"
    );
    assert_eq!(run(ground.preloaded(&program)), plain, "preloaded");
    assert_eq!(run(ground.recorded(&program)), plain, "recorded");
    let trace = ground.trace();
    let updates = trace.of_category("graph");
    assert_eq!(updates.len(), 2, "{updates:?}");
    for update in updates {
        assert_eq!(update["name"], "aclmdlRIUpdate");
        assert_eq!(update["args"]["not_timed"], "graph_update");
    }
}

#[test]
fn another_hook_of_dlsym_before_or_behind_ours_is_asked() {
    let ground = Ground::with_fakes();
    ground.library("libhook.so", "dlsym_hook.c", &[] as &[&str]);
    ground.library(
        "libother.so",
        "fake_acl.c",
        &["-DPART=ACL", "-Wl,-Bsymbolic", "-lfake_answer"],
    );
    ground.program("handles", &["handles.c"], &[] as &[&str]);
    let libraries = ["libascendcl.so", "libother.so"].map(|name| ground.text(name));
    let (ours, hook) = (preload().display().to_string(), ground.text("libhook.so"));
    for preloads in [format!("{ours}:{hook}"), format!("{hook}:{ours}")] {
        let mut command = ground.recorded(ground.path("handles"));
        command.args(&libraries).env("LD_PRELOAD", &preloads);
        let ended = end(command.env("FAKE_QUIET", "1"));
        assert_eq!(ended.code, 42, "{ended:?}");
        assert!(
            ended.stdout.contains("hook asked getpid\n"),
            "{preloads}: {ended:?}"
        );
    }
}

#[test]
fn what_is_recorded_says_grid_and_bytes() {
    let ground = ground();
    let ended = end(ground.recorded(ground.path("direct")).arg("direct"));
    assert_eq!(ended.code, 42);
    let trace = ground.trace();
    let first = |name: &str| {
        let mut named = trace.recorded().filter(|event| event["name"] == name);
        named.next().unwrap()["args"].clone()
    };
    assert_eq!(first("Asked")["grid"], 0x8000_0004_u32);
    assert_eq!(first("rtsLaunchCpuKernel")["grid"], 0x8000_0004_u32);
    assert_eq!(first("HcclBatchSendRecv")["bytes"], 3 * 2 + 5 * 4);
    assert_eq!(first("HcclAllReduce")["bytes"], u64::MAX, "cannot be more");
    assert_eq!(first("HcclBarrier").get("bytes"), None);
    let bytes = 0x8000_0000_0000_0003_u64;
    assert_eq!(first("aclrtMemcpyAsync")["bytes"], bytes);
    assert_eq!(first("aclrtMemcpy")["bytes"], bytes - 1);
    assert_eq!(first("aclrtMemcpyAsyncWithCondition")["bytes"], bytes);
    assert_eq!(first("aclrtMemcpyBatchAsync")["bytes"], 777);
    assert_eq!(first("aclrtMemcpyBatch")["bytes"], 777);
    assert_eq!(first("aclrtCmoAsync")["bytes"], bytes);
    assert_eq!(first("aclrtReduceAsync")["bytes"], bytes + 2);
    assert_eq!(first("aclrtValueWrite")["bytes"], 8);
    assert_eq!(first("aclrtSynchronizeStream")["handle"], "0x5a0000000001");
    assert_eq!(first("aclrtLaunchHostFunc")["handle"], "0x5a0000000003");
    assert_eq!(first("aclrtValueWait")["handle"], "0x5a0000000001");
}

#[test]
fn of_eager_launches_one_in_so_many_is_recorded_and_the_others_are_counted() {
    let ground = ground();
    let mut command = ground.recorded(ground.path("direct"));
    command.arg("direct").env_remove("SA_PROFILE_DEVICE_SAMPLE");
    assert_eq!(end(&mut command).code, 42);
    let counts = ground.trace().counts();
    let of = |category: &str| -> usize {
        let category = counts.iter().filter(|((known, _), _)| known == category);
        category.map(|(_, count)| count).sum()
    };
    assert_eq!(of("comm"), 15 * ROUNDS, "collectives always");
    let eager = 4 + 22 + 3 + 8; // of ACL and the rt level, operators, copying, setting and the like
    let sampled = of("kernel") + of("memcpy") - 3 * ROUNDS; // aclrtMemcpy, aclrtMemcpyBatch and aclrtMemset are waits
    // The first one, and then by chance.
    assert!((1..=eager * ROUNDS / 8).contains(&sampled), "{counts:?}");
}
