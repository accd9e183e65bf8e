//! Each interposed function in each form in which a program can call it: what the program sees is the same with the preload, recording or not, and what is recorded is exactly what was
//! launched.

use crate::ground::{Ground, end, preload, preloads};
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::process::Command;

/// Events of each round: category, count and names.
const ROUND: [(&str, usize, &str); 9] = [
    (
        "comm",
        1,
        "HcclAllGather,HcclAllGatherV,HcclAllReduce,HcclAlltoAll,HcclAlltoAllV,HcclAlltoAllVC,HcclBarrier,\
        HcclBatchSendRecv,HcclBroadcast,HcclRecv,HcclReduce,HcclReduceScatter,HcclReduceScatterV,\
        HcclScatter,HcclSend",
    ),
    ("device", 1, "aclrtSetDevice"),
    ("graph", 1, "aclmdlRIExecute,aclmdlRIExecuteAsync"),
    // `even text`: the operators, and rtAicpuKernelLaunchExWithArgs.
    ("kernel", 4, "Asked,even text"),
    // aclopExecuteV2 and rtKernelLaunchFwk.
    ("kernel", 2, "odd text"),
    (
        "kernel",
        1,
        "AicpuOp,rtFftsPlusTaskLaunch,rtFftsPlusTaskLaunchWithFlag,rtFusionLaunch,rtKernelLaunch,\
        rtKernelLaunchEx,rtKernelLaunchWithFlag,rtKernelLaunchWithFlagV2,rtKernelLaunchWithHandle,\
        rtKernelLaunchWithHandleV2,rtLaunchKernelByFuncHandle,rtLaunchKernelByFuncHandleV2,\
        rtLaunchKernelByFuncHandleV3,rtVectorCoreKernelLaunch,rtVectorCoreKernelLaunchWithHandle,\
        rtsLaunchCpuKernel,rtsLaunchKernelWithConfig,rtsLaunchKernelWithDevArgs,\
        rtsLaunchKernelWithHostArgs",
    ),
    (
        "memcpy",
        1,
        "aclrtCmoAsync,aclrtMemcpy,aclrtMemcpyAsync,aclrtMemcpyAsyncWithCondition,aclrtMemcpyBatch,\
        aclrtMemcpyBatchAsync,aclrtMemset,aclrtMemsetAsync,aclrtReduceAsync,aclrtValueWrite",
    ),
    (
        "model",
        1,
        "aclmdlExecute,aclmdlExecuteAsync,aclmdlExecuteAsyncV2,aclmdlExecuteV2,rtModelExecute",
    ),
    (
        "sync",
        1,
        "aclrtLaunchHostFunc,aclrtSynchronizeDevice,aclrtSynchronizeEvent,aclrtSynchronizeStream,\
        aclrtSynchronizeStreamWithTimeout,aclrtValueWait",
    ),
];
/// Waits and the like among them: the host's own sync and device calls, `aclmdlRIExecute`, `aclmdlExecute` with its V2, and copies that block.
const WAITS: usize = 13;
/// Rounds in all, and those in which the real functions fail.
const ROUNDS: usize = 4;
const BAD_ROUNDS: usize = 2;

fn expected() -> BTreeMap<(String, String), usize> {
    let mut expected = BTreeMap::new();
    for (category, count, names) in ROUND {
        for name in names.split(',') {
            let key = (category.to_owned(), name.to_owned());
            expected.insert(key, count * ROUNDS);
        }
    }
    expected
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
fn compare(ground: &Ground, program: &str, form: &str, libraries: &[String]) {
    let run = |mut command: Command| end(command.arg(form).args(libraries));
    let program = ground.path(program);
    let plain = run(ground.command(&program));
    let said = (plain.code, plain.stderr.as_str());
    assert_eq!(said, (42, "done\n"), "{form}: {plain:?}");
    let real = plain.stdout.matches("  real ").count();
    assert_eq!(real, 97 * ROUNDS, "{form}: each is called once in a round");
    assert_eq!(run(ground.preloaded(&program)), plain, "{form}, preloaded");
    assert_eq!(run(ground.recorded(&program)), plain, "{form}, recorded");
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
    let all = expected.values().sum::<usize>() / ROUNDS;
    let failed = trace
        .recorded()
        .filter(|event| !event["args"]["error"].is_null());
    assert_eq!(failed.count(), all * BAD_ROUNDS, "what failed says so");
    let launches = trace
        .recorded()
        .filter(|event| !event["args"]["launch"].is_null());
    assert_eq!(launches.count(), (all - WAITS) * ROUNDS);
    // A profiler that fails to start pauses for nothing, and one that fails to stop goes on.
    for name in ["device_timing_paused", "device_timing_resumed"] {
        assert_eq!(trace.count(name), ROUNDS, "{name}");
    }
    let marks = trace.of_category("mstx").len();
    assert_eq!(marks, 2 * ROUNDS, "no range ends with the id it was given");
}

#[test]
fn calls_in_every_form_are_passed_through_and_recorded() {
    let ground = ground();
    let (client, fakes) = (ground.text("libclient.so"), ground.fakes());
    for (program, form, libraries) in [
        ("direct", "direct", vec![]),
        ("adversary", "local", vec![client]),
        ("adversary", "default", fakes.clone()),
        ("adversary", "handle", fakes),
    ] {
        compare(&ground, program, form, &libraries);
        assert_recorded(&ground);
        assert_described(&ground.trace());
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
    assert_sampled(&ground);
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
    // A second hook of dlsym is called whether it is preloaded before ours or after it.
    ground.library("libhook.so", "dlsym_hook.c", &[] as &[&str]);
    let (ours, hook) = (preload(), ground.path("libhook.so"));
    for libraries in [[&*ours, &hook], [&hook, &ours]] {
        let mut command = ground.recorded(&program);
        command.env("LD_PRELOAD", preloads(&libraries));
        let ended = run(command);
        assert_eq!(ended.code, 42, "{ended:?}");
        let asked = ended.stdout.contains("hook asked getpid\n");
        assert!(asked, "{libraries:?}: {ended:?}");
    }
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

/// The grids, bytes and handles of the launches.
fn assert_described(trace: &Trace) {
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

/// Asserts that eager launches are sampled and that all collectives are recorded.
fn assert_sampled(ground: &Ground) {
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
