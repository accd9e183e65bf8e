//! Runs in which nothing goes wrong.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::{Trace, Workplace};

const SMALL: &str = "--requests 8 --concurrency 4 --tokens 8";

#[test]
fn every_request_is_answered_and_every_process_recorded() {
    let workplace = Workplace::new();
    let finished = workplace.run(SMALL).expect(0);
    assert_eq!(finished.line("requests"), "8 ok, 0 failed");
    assert!(
        finished.stdout.contains("5 processes"),
        "{}",
        finished.stdout
    );
    assert!(
        finished
            .line("npu")
            .starts_with("the NPU rows are SIMULATED"),
        "{}",
        finished.stdout
    );
    assert!(
        finished
            .stdout
            .contains("0 unfinished spans, 0 lost events, 0 damaged places"),
        "{}",
        finished.stdout
    );
    let last = finished.stdout.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("next       ") && last.ends_with("    says where the time went"),
        "{}",
        finished.stdout
    );
    assert_eq!(finished.stderr, "");
    let fragments = fs::read_dir(workplace.path("profile_out/fragments")).unwrap();
    let names: Vec<String> = fragments
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        names.len(),
        5,
        "a fragment for each process and no ring left: {names:?}"
    );
    assert!(
        names.iter().all(|name| name.ends_with(".jsonl")),
        "{names:?}"
    );

    let trace = workplace.trace();
    let spans = [
        "http.completions",
        "AsyncLLMEngine.add_request",
        "client.completions",
    ];
    for name in spans {
        assert_eq!(
            trace.named(name).filter(|event| event["ph"] == "X").count(),
            8,
            "{name}"
        );
    }
    assert_eq!(
        trace.named("http.stream_completion.finished").count(),
        4,
        "every other request streams"
    );
    let tokens: usize = finished
        .line("tokens")
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(trace.named("request.token").count(), tokens);
    assert_eq!(workplace.processes(), [] as [i32; 0]);
}

#[test]
fn every_worker_executes_every_step_and_each_step_holds_its_kernels() {
    let workplace = Workplace::new();
    workplace
        .run("--requests 4 --tokens 4 --workers 3")
        .expect(0);
    let trace = workplace.trace();
    let scheduled: BTreeSet<u64> = trace
        .of("engine-core", "scheduler.queue_worker_step")
        .iter()
        .map(|event| event["args"]["step"].as_u64().unwrap())
        .collect();
    assert!(!scheduled.is_empty());
    for worker in ["worker-0", "worker-1", "worker-2"] {
        let steps = trace.of(worker, "WorkerProcess.execute_step");
        let executed: BTreeSet<u64> = steps
            .iter()
            .map(|event| event["args"]["step"].as_u64().unwrap())
            .collect();
        assert_eq!(executed, scheduled, "{worker}");
        let runs = trace.of(worker, "PyptoExecutor.run_prefill").len()
            + trace.of(worker, "PyptoExecutor.run_decode").len();
        assert_eq!(trace.of(worker, "lm_head").len(), runs, "{worker}");
        assert!(
            trace
                .of(worker, "qkv_proj")
                .iter()
                .all(|kernel| kernel["args"]["n"] == 768),
            "a third of 3 x 768"
        );
    }
}

#[test]
fn texts_depend_on_the_seed_and_not_on_batches_or_preemption() {
    let digest = |arguments: &str| {
        let workplace = Workplace::new();
        let finished = workplace
            .run(&format!("--requests 6 --tokens 10 {arguments}"))
            .expect(0);
        let preempted = workplace.trace().named("request.preempted").count();
        (
            finished
                .line("digest")
                .split(' ')
                .next()
                .unwrap()
                .to_owned(),
            preempted,
        )
    };
    let (alone, none) = digest("--concurrency 1");
    let (crowded, some) = digest("--concurrency 6 --kv-blocks 12");
    assert_eq!((none, some > 0), (0, true), "only the small cache preempts");
    assert_eq!(alone, crowded);
    assert_ne!(alone, digest("--concurrency 1 --seed 2").0);
}

#[test]
fn the_directory_and_the_output_can_be_chosen() {
    let workplace = Workplace::new();
    let mut command = workplace.command("--requests 1 --tokens 1 -o chosen.json");
    let status = command.env("SA_PROFILE_DIR", "elsewhere").status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(workplace.path("elsewhere/fragments").is_dir());
    assert!(!workplace.path("profile_out").exists());
    assert_eq!(
        Trace::read(&workplace.path("chosen.json"))
            .named("http.completions")
            .count(),
        1
    );
}

#[test]
fn without_merge_the_fragments_stay() {
    let workplace = Workplace::new();
    let finished = workplace
        .run("--requests 1 --tokens 1 --no-merge")
        .expect(0);
    finished.says("fragments", "trace-merge");
    assert!(!workplace.path("profile_out/trace.json").exists());
    assert_eq!(
        fs::read_dir(workplace.path("profile_out/fragments"))
            .unwrap()
            .count(),
        5
    );
}

/// Spans of a kernel in the rows of a simulated NPU.
fn on_device<'a>(trace: &'a Trace, worker: &str, kernel: &'a str) -> Vec<&'a serde_json::Value> {
    let index = worker.rsplit('-').next().unwrap();
    trace.of(&format!("SIMULATED NPU {index} · {worker}"), kernel)
}

#[test]
fn each_kernel_stands_on_its_npu_with_an_arrow_from_its_launch() {
    let workplace = Workplace::new();
    workplace.run("--requests 4 --tokens 4").expect(0);
    let trace = workplace.trace();
    for worker in ["worker-0", "worker-1"] {
        let launched = trace.of(worker, "lm_head");
        let ran = on_device(&trace, worker, "lm_head");
        assert_eq!(launched.len(), ran.len(), "{worker}");
        for slice in ran {
            let us = slice["args"]["device_wall_us"].as_f64().unwrap();
            assert!(us >= 119.0, "at least as long as the kernel takes: {us}");
        }
    }
    let arrows = trace
        .named("HostToDevice")
        .filter(|event| event["ph"] == "f")
        .count();
    let slices = trace
        .events
        .iter()
        .filter(|event| event["args"]["device_method"] == "event_pair");
    assert_eq!(arrows, slices.count());
}

#[test]
fn an_unmodified_worker_shows_its_launches_by_preload_alone() {
    let workplace = Workplace::new();
    let arguments = "--requests 6 --tokens 8 --preload";
    let finished = workplace.run(arguments).expect(0);
    let digest = |finished: &crate::harness::Finished| finished.line("digest").to_owned();
    let trace = workplace.trace();
    assert_eq!(
        trace.named("WorkerProcess.execute_step").count(),
        0,
        "the worker records nothing"
    );
    let slices: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event["args"]["device_method"] == "event_pair")
        .collect();
    assert!(!slices.is_empty());
    let names: BTreeSet<&str> = slices
        .iter()
        .filter_map(|slice| slice["name"].as_str())
        .collect();
    assert!(
        names.contains("qkv_proj") && names.contains("mlp_up"),
        "{names:?}"
    );
    assert!(
        slices.iter().all(|slice| slice["args"]["stands_for"] == 8),
        "one in eight"
    );
    let plain = Workplace::new();
    let plain = plain.run("--requests 6 --tokens 8 --device off").expect(0);
    assert_eq!(digest(&finished), digest(&plain), "the same texts");
}
