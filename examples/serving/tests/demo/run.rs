//! Runs without failures.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::{Trace, Workplace};

const SMALL: &str = "--requests 8 --concurrency 4 --tokens 8";

#[test]
fn every_request_is_answered_and_every_process_recorded() {
    let workplace = Workplace::new();
    let finished = workplace.run(SMALL).expect(0);
    assert_eq!(finished.line("requests"), "8 ok, 0 failed");
    finished.assert_line("npu", "the NPU tracks are SIMULATED");
    for text in [
        "5 processes",
        "0 unfinished spans, 0 lost events, 0 damaged places",
    ] {
        assert!(finished.stdout.contains(text), "{}", finished.stdout);
    }
    let last = finished.stdout.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("next       ") && last.ends_with("    says where the time went"),
        "{}",
        finished.stdout
    );
    assert_eq!(finished.stderr, "");
    assert_eq!(
        workplace.fragments(),
        ["jsonl"; 5],
        "one fragment for each process, and no ring"
    );

    let trace = workplace.trace();
    let count = |name: &str| trace.named(name).filter(|event| event["ph"] == "X").count();
    for name in [
        "http.completions",
        "AsyncLLMEngine.add_request",
        "client.completions",
    ] {
        assert_eq!(count(name), 8, "{name}");
    }
    let streamed = trace.named("http.stream_completion.finished");
    assert_eq!(streamed.count(), 4, "every other request streams");
    let tokens = trace.named("request.token").count();
    assert_eq!(
        finished.line("tokens").split(' ').next(),
        Some(&*tokens.to_string())
    );
    let settings = &trace.named_in("engine-core", "engine_settings")[0]["args"];
    assert_eq!(
        (
            settings["max_num_seqs"].as_u64(),
            settings["kv_block_size"].as_u64()
        ),
        (Some(8), Some(4))
    );
    assert_eq!(workplace.processes(), [] as [i32; 0]);
}

/// Returns the step numbers of these spans.
fn steps(spans: &[&Value]) -> BTreeSet<u64> {
    let number = |span: &&Value| span["args"]["step"].as_u64().unwrap();
    spans.iter().map(number).collect()
}

#[test]
fn every_worker_executes_every_step_and_its_kernels_run_on_its_npu() {
    let workplace = Workplace::new();
    workplace
        .run("--requests 4 --tokens 4 --workers 3")
        .expect(0);
    let trace = workplace.trace();
    let scheduled = steps(&trace.named_in("engine-core", "scheduler.queue_worker_step"));
    assert!(!scheduled.is_empty());
    for index in 0..3 {
        let worker = format!("worker-{index}");
        let executed = steps(&trace.named_in(&worker, "WorkerProcess.execute_step"));
        assert_eq!(executed, scheduled, "{worker}");
        let runs = trace.named_in(&worker, "PyptoExecutor.run_prefill").len()
            + trace.named_in(&worker, "PyptoExecutor.run_decode").len();
        assert_eq!(trace.named_in(&worker, "lm_head").len(), runs, "{worker}");
        let ran = trace.named_in(&format!("SIMULATED NPU {index} · {worker}"), "lm_head");
        assert_eq!(ran.len(), runs, "{worker}");
        for slice in ran {
            let us = slice["args"]["device_wall_us"].as_f64().unwrap();
            assert!(us >= 119.0, "at least the duration of the kernel: {us}");
        }
    }
    let arrows = trace
        .named("HostToDevice")
        .filter(|event| event["ph"] == "f");
    assert_eq!(arrows.count(), timed(&trace).len());
}

/// Returns the slices of kernels that were timed on a device.
fn timed(trace: &Trace) -> Vec<&Value> {
    let events = trace.events.iter();
    events
        .filter(|event| event["args"]["device_method"] == "event_pair")
        .collect()
}

#[test]
fn the_directory_and_the_output_can_be_chosen_and_the_merge_left_out() {
    let workplace = Workplace::new();
    let mut command = workplace.command("--requests 1 --tokens 1 -o chosen.json");
    let status = command.env("SA_PROFILE_DIR", "elsewhere").status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(workplace.path("elsewhere/fragments").is_dir());
    assert!(!workplace.path("profile_out").exists());
    let trace = Trace::read(&workplace.path("chosen.json"));
    assert_eq!(trace.named("http.completions").count(), 1);
    let finished = workplace
        .run("--requests 1 --tokens 1 --no-merge")
        .expect(0);
    finished.assert_line("fragments", "trace-merge");
    assert!(!workplace.path("profile_out/trace.json").exists());
    assert_eq!(workplace.fragments().len(), 5);
}

#[test]
fn an_unmodified_worker_shows_its_launches_by_preload_alone() {
    let workplace = Workplace::new();
    let arguments = "--requests 6 --tokens 8 --preload";
    let finished = workplace.run(arguments).expect(0);
    let trace = workplace.trace();
    assert_eq!(
        trace.named("WorkerProcess.execute_step").count(),
        0,
        "the worker records nothing"
    );
    let slices = timed(&trace);
    assert!(!slices.is_empty());
    for name in ["qkv_proj", "mlp_up"] {
        assert!(slices.iter().any(|slice| slice["name"] == name), "{name}");
    }
    let is_one_in_eight = |slice: &&Value| slice["args"]["stands_for"] == 8;
    assert!(slices.iter().all(is_one_in_eight));
    let plain = Workplace::new();
    let plain = plain.run("--requests 6 --tokens 8 --device off").expect(0);
    assert_eq!(
        finished.line("digest"),
        plain.line("digest"),
        "the same texts"
    );
}
