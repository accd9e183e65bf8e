//! What the report says of an idle device, against a program that knows, and against what the simulated NPU really did.

use e2e::host_support::{Host, Outcome, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use trace_merge::{Options, Progress};
use trace_report::{IdleCause, ReportOptions, read};

const NPU: &str = env!("CARGO_BIN_EXE_npu");
/// Of the idle time.
const TOLERANCE: f64 = 0.01;

/// How long the program made its device wait for each cause, in ns.
fn planted(outcome: &Outcome) -> BTreeMap<String, i64> {
    let mut planted = BTreeMap::new();
    for line in outcome.stdout.lines() {
        let mut words = line.split(' ');
        if let (Some("idle"), Some(cause), Some(ns)) = (words.next(), words.next(), words.next()) {
            *planted.entry(cause.to_owned()).or_insert(0) += ns.parse::<i64>().expect("a number");
        }
    }
    planted
}

/// The time between the first kernel and the last one in which none ran.
fn truly_idle(truth: &str) -> i64 {
    let tasks = truth
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let time = |task: &Value, name: &str| task[name].as_i64().expect("a time");
    let kernels = tasks.filter(|task| task["kind"] == "kernel");
    let mut times: Vec<(i64, i64)> = kernels
        .map(|task| (time(&task, "start_ns"), time(&task, "end_ns")))
        .collect();
    times.sort_unstable();
    times.windows(2).map(|two| two[1].0 - two[0].1).sum()
}

#[test]
fn planted_waits_of_a_simulated_npu_are_found() {
    let test = std::env::current_exe().expect("the path of this test");
    let dir = scratch();
    let (run, truth) = (dir.path().join("run"), dir.path().join("truth.jsonl"));
    let outcome = Host::new(NPU)
        .arguments(&["served", "4"])
        .variable(
            "SA_PROFILE_SIM_LIBRARY",
            test.with_file_name("libascendcl.so"),
        )
        .variable("SA_PROFILE_DEVICE", "sim")
        .variable("ASCEND_SIM_KERNEL_US", "300")
        .variable("ASCEND_SIM_TRUTH", &truth)
        .recorded_in(&run)
        .run()
        .quiet();
    let planted = planted(&outcome);
    let options = Options::new([run]);
    let report = read(&options, &ReportOptions::default(), &Progress::default()).expect("a report");
    let [idle] = report.idle.as_slice() else {
        panic!("{:?}", report.idle)
    };
    let truth = truly_idle(&std::fs::read_to_string(truth).expect("the truth"));
    println!("IDLE {} ns, in truth {truth} ns", idle.idle_ns);
    let within = TOLERANCE * truth as f64;
    assert!(
        ((idle.idle_ns - truth) as f64).abs() <= within,
        "{} {truth}",
        idle.idle_ns
    );
    assert_eq!(planted.len(), 11);
    let mut named = 0;
    for time in &idle.causes {
        let cause = serde_json::to_value(time.cause).expect("a name");
        let expected = planted
            .get(cause.as_str().expect("a text"))
            .copied()
            .unwrap_or(0);
        println!("IDLE {cause}: found {} ns, planted {expected} ns", time.ns);
        named += i32::from(expected > 0);
        // What the program does between its waits is in no span, and counts as the engine's.
        if !matches!(time.cause, IdleCause::Engine | IdleCause::LaunchDelay) {
            assert!(
                ((time.ns - expected) as f64).abs() <= within,
                "{cause}: {} {expected}",
                time.ns
            );
        }
    }
    assert_eq!(named, 11, "{:?}", idle.causes);
}
