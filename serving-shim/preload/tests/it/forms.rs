//! Each interposed function in each form in which a program can call it. The preload, recording or not, changes nothing that the program sees, and exactly the launches are recorded
//! that it made.

use crate::fakes::{fakes, functions, links, paths};
use c_programs::{Ground, NONE, Trace, end, preload, preloads};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Number of all rounds, and of rounds in which the real functions fail.
const ROUNDS: usize = 4;
const BAD_ROUNDS: usize = 2;

/// Asserts that each call of each round is recorded with its arguments.
fn assert_recorded(trace: &Trace) {
    let mut differences = BTreeMap::new();
    let is_own = |event: &Value| event["cat"] == "sa_profile";
    for event in trace.recorded().filter(|event| !is_own(event)) {
        let mut args = event["args"].as_object().cloned().unwrap_or_default();
        let kind = match &event["ph"] {
            phase if phase == "i" => "mark",
            _ if args.contains_key("launch") => "launch",
            _ => "wait",
        };
        args.retain(|key, _| ["grid", "bytes", "handle"].contains(&key.as_str()));
        let text = |key: &str| event[key].as_str().unwrap();
        let key = (
            kind,
            text("cat"),
            Value::from(args).to_string(),
            text("name"),
        );
        *differences.entry(key).or_insert(0_isize) += 1;
    }
    let (mut all, marks) = (0, 2);
    for (kind, category, args, name) in functions().filter_map(|function| function.event) {
        let key = (kind, category, args.to_string(), name);
        *differences.entry(key).or_insert(0) -= ROUNDS as isize;
        all += 1;
    }
    differences.retain(|_, more| *more != 0);
    assert_eq!(differences, BTreeMap::new(), "more than expected, or less");
    // Each call that failed has its error.
    let failed = trace.recorded();
    let failed = failed.filter(|event| !event["args"]["error"].is_null());
    assert_eq!(failed.count(), (all - marks) * BAD_ROUNDS);
    // A profiler that fails to start pauses nothing, and one that fails to stop continues.
    for name in ["device_timing_paused", "device_timing_resumed"] {
        assert_eq!(trace.count(name), ROUNDS, "{name}");
    }
}

#[test]
fn calls_in_every_form_are_passed_through_and_recorded() {
    let ground = fakes();
    let direct = [vec!["-DDIRECT".to_owned()], links()].concat();
    ground.library("libclient.so", "calls.c", &direct);
    ground.program("adversary", &["adversary.c", "calls.c"], &NONE);
    ground.program("direct", &["adversary.c", "calls.c"], &direct);
    let (client, fakes) = (ground.text("libclient.so"), paths(&ground));
    for (program, form, libraries) in [
        ("direct", "direct", vec![]),
        ("adversary", "local", vec![client]),
        ("adversary", "default", fakes.clone()),
        ("adversary", "handle", fakes),
    ] {
        let arguments = [vec![form.to_owned()], libraries].concat();
        let said = ground.unchanged(ground.path(program), &arguments);
        let real = said.matches("  real ").count();
        assert_eq!(real, 97 * ROUNDS, "{form}: each is called once in a round");
        assert_recorded(&ground.merge_and_clear());
    }
    assert_sampled(&ground);
}

/// Asserts that eager launches are sampled and that all collectives are recorded.
fn assert_sampled(ground: &Ground) {
    let mut command = ground.watched(ground.path("direct"));
    command.arg("direct").env_remove("SA_PROFILE_DEVICE_SAMPLE");
    assert_eq!(end(&mut command).code, 42);
    let trace = ground.trace();
    let of = |category| trace.with("cat", category).len();
    assert_eq!(of("comm"), 15 * ROUNDS, "collectives always");
    let eager = 4 + 22 + 3 + 8; // ACL, rt level, operators, copies and memory settings
    let sampled = of("kernel") + of("memcpy") - 3 * ROUNDS; // aclrtMemcpy, aclrtMemcpyBatch and aclrtMemset are waits
    // The first one, then random ones.
    assert!((1..=eager * ROUNDS / 8).contains(&sampled), "{sampled}");
}

#[test]
fn only_the_function_behind_a_wrapper_is_taken_for_it() {
    let ground = fakes();
    ground.library("libother.so", "quiet_acl.c", &NONE);
    let program = ground.program("handles", &["handles.c"], &NONE);
    let libraries = ["libother.so", "libascendcl.so"].map(|name| ground.text(name));
    let run = |mut command: Command| {
        let ended = end(command.args(&libraries).env("FAKE_QUIET", "1"));
        assert_eq!(ended.code, 42, "{ended:?}");
        ended.stdout
    };
    // `owner` is the library whose function the vendor's handle returns.
    let found = |owner: &str| {
        format!(
            "libother.so launched 0\n{owner} launched 0\nsame again 1\nnot wrapped libascendcl.so\naclrtSynchronizeNothing 0 is said\n\
             rtKernelLaunch 0 is said\nlibc libc.so.6\ndlsym 1\n"
        )
    };
    assert_eq!(run(ground.command(&program)), found("libascendcl.so"));
    let ours = found("libsa_profile_preload.so");
    assert_eq!(run(ground.watched(&program)), ours);
    // Functions of the other library are not ours.
    assert_eq!(ground.trace().with("cat", "kernel").len(), 1);
    // A second hook of dlsym is called whether it is preloaded before ours or after it.
    ground.library("libhook.so", "dlsym_hook.c", &NONE);
    let (ours, hook) = (preload(), ground.path("libhook.so"));
    for libraries in [[&*ours, &hook], [&hook, &ours]] {
        let mut command = ground.watched(&program);
        command.env("LD_PRELOAD", preloads(&libraries));
        let said = run(command);
        let is_asked = said.contains("hook asked getpid\n");
        assert!(is_asked, "{libraries:?}: {said}");
    }
}

/// `aclmdlRIUpdate` is newer than CANN 8.5: because of us, no program may believe that it exists.
#[test]
fn a_function_that_not_every_cann_has_is_seen_by_those_who_ask_for_it() {
    let ground = fakes();
    let program = ground.program("asked", &["asked_only.c"], &NONE);
    let said = ground.unchanged(program, &[ground.path("libascendcl.so")]);
    let first = "before 0\nsaid 1\nlocal 0\n  real aclmdlRIUpdate: 0x5a";
    assert!(said.starts_with(first), "{said}");
    let trace = ground.trace();
    for (key, value) in [
        ("cat", "graph"),
        ("name", "aclmdlRIUpdate"),
        ("not_timed", "graph_update"),
    ] {
        assert_eq!(trace.with(key, value).len(), 2, "{key}");
    }
}
