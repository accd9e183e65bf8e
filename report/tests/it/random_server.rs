//! Servers in which engines, workers and devices do anything at any time: spans that touch and overlap, and many changes at one time.

use crate::oracle::Numbers;
use serde_json::{Value, json};

const ENGINES: u64 = 3;
const WORKERS: u64 = 6;
const EVENTS: u64 = 700;
/// Length of the trace in µs.
const WALL_US: u64 = 3_000;

/// What spans of engines and workers are called.
const NAMES: [&str; 21] = [
    "scheduler.schedule",
    "executor.execute_model",
    "scheduler.update_from_output",
    "WorkerWrapperBase.execute_model",
    "Worker: execute_step",
    "model_runner.sample",
    "connector.wait_for_save",
    "my_kv_transfer",
    "gc.collect",
    "gc",
    "matmul",
    "matmul",
    "http.request",
    "Scheduler.batch_decode",
    "nothing",
    "sample",
    "model_runner:  execute_model",
    "executor. sample_tokens",
    "resample",
    "executor.execute_step",
    "OutputProcessor.process_outputs",
];

/// A server of three engines with two workers each, and a device of each worker whose name says so.
pub(crate) fn at_random(seed: u64) -> Vec<Value> {
    let mut numbers = Numbers::new(seed);
    let mut lines = vec![begin()];
    for number in 0..ENGINES {
        let pid = engine_pid(number);
        lines.extend(named(
            pid,
            &format!("engine-{number}"),
            format!("pid {pid}"),
        ));
    }
    for number in 0..WORKERS {
        let pid = worker_pid(number);
        lines.extend(named(pid, &format!("w{number}"), format!("pid {pid}")));
    }
    for number in 0..WORKERS {
        let labels = format!("NPU {number}, pid {}", worker_pid(number));
        let name = format!("NPU {number} · w{number}");
        lines.extend(named(device_pid(number), &name, labels));
    }
    for nth in 0..EVENTS {
        let worker = numbers.below(WORKERS);
        let (pid, mut line) = match numbers.below(9) {
            0..3 => (device_pid(worker), kernel(&mut numbers)),
            3 => (engine_pid(worker / 2), counts(&mut numbers)),
            4 => (engine_pid(worker / 2), span(&mut numbers, worker / 2, nth)),
            5 => {
                let mut moments = moments(&mut numbers, nth);
                for (line, tid) in moments.iter_mut().zip(1_000_000 * (nth + 1)..) {
                    (line["pid"], line["tid"]) = (json!(engine_pid(worker / 2)), json!(tid));
                }
                lines.extend(moments);
                continue;
            }
            _ => (worker_pid(worker), span(&mut numbers, worker / 2, nth)),
        };
        // Each on a thread of its own: Perfetto drops what overlaps.
        (line["pid"], line["tid"]) = (json!(pid), json!(1_000 + nth));
        line["ts"] = json!(numbers.below(WALL_US));
        lines.push(line);
    }
    lines
}

/// Perfetto's times are those of the trace, and the report's count from its begin on: that is 0.
pub(crate) fn begin() -> Value {
    json!({"ph": "i", "pid": 9, "tid": 1, "ts": 0, "s": "t", "name": "begin"})
}

fn engine_pid(number: u64) -> u64 {
    10 + number
}

fn worker_pid(number: u64) -> u64 {
    20 + number
}

fn device_pid(number: u64) -> u64 {
    30 + number
}

fn named(pid: u64, name: &str, labels: String) -> [Value; 2] {
    [
        json!({"ph": "M", "pid": pid, "tid": 1, "name": "process_name", "args": {"name": name}}),
        json!({"ph": "M", "pid": pid, "tid": 1, "name": "process_labels", "args": {"labels": labels}}),
    ]
}

/// A slice of a device; most say how long they were launched before.
fn kernel(numbers: &mut Numbers) -> Value {
    let args = match numbers.below(80) {
        queue_us @ 0..60 => json!({"queue_us": queue_us}),
        60..65 => json!({"queue_us": -3}),
        65..68 => json!({"queue_us": 1e17}),
        _ => json!({}),
    };
    let dur = 1 + numbers.below(60);
    json!({"ph": "X", "dur": dur, "cat": "kernel", "name": "matmul", "args": args})
}

/// What an engine's scheduler has, as far as it says so.
fn counts(numbers: &mut Numbers) -> Value {
    let mut level = || match numbers.below(8) {
        0 => json!(-1),
        1 => json!(0.25),
        2 => json!(5e9),
        level => json!(level % 2),
    };
    let (running, waiting) = (level(), level());
    let args = match numbers.below(4) {
        0 => json!({"running": running}),
        1 => json!({"waiting": waiting}),
        _ => json!({"running": running, "waiting": waiting}),
    };
    json!({"ph": "C", "name": "requests", "args": args})
}

/// Returns some moments of a request in any order, or the begin of a request that does not end.
fn moments(numbers: &mut Numbers, nth: u64) -> Vec<Value> {
    let args = json!({"request_id": format!("m{nth}")});
    if nth > EVENTS - 20 {
        let ts = numbers.below(WALL_US);
        return vec![json!({"ph": "B", "name": "http.request", "ts": ts, "args": args})];
    }
    const MOMENTS: [&str; 6] = [
        "queued",
        "scheduled",
        "first_token",
        "token",
        "finished",
        "answered",
    ];
    let mut lines = Vec::new();
    for name in MOMENTS {
        let ts = numbers.below(WALL_US);
        if numbers.below(3) > 0 {
            let name = format!("request.{name}");
            lines.push(json!({"ph": "i", "s": "t", "name": name, "ts": ts, "args": args}));
        }
    }
    lines
}

/// A span of an engine or one of its workers. Those of the first two engines name requests; the last one's name none.
fn span(numbers: &mut Numbers, engine: u64, nth: u64) -> Value {
    let name = NAMES[usize::try_from(numbers.below(NAMES.len() as u64)).unwrap()];
    let id = format!("r{engine}-{}", numbers.below(9));
    let dur = 1 + numbers.below(60);
    let args = match (name, numbers.below(3)) {
        ("http.request", 0) => json!({"request_id": format!("{id}-{nth}")}),
        ("http.request", how) => {
            let waited_us = numbers.below(40_000) as f64 / 1e3;
            let mut args = json!({"request_id": format!("{id}-{nth}"), "waited_us": waited_us});
            if how == 1 {
                args["answered_us"] = json!(waited_us + numbers.below(dur) as f64);
            }
            args
        }
        (_, 0) if engine == 0 => json!({"request_ids": [id, "another"]}),
        (_, 0) if engine == 1 => json!({"request_ids": [id]}),
        _ => json!({}),
    };
    let category = if name == "matmul" { "kernel" } else { "step" };
    json!({"ph": "X", "dur": dur, "cat": category, "name": name, "args": args})
}
