//! Servers in which engines, workers and devices do anything at any time: spans that touch and overlap, and many changes at one time.

use crate::events::events;
use crate::oracle::Numbers;
use serde_json::Value;

const ENGINES: u64 = 3;
const WORKERS: u64 = 6;
const EVENTS: u64 = 700;
/// Length of the trace in µs.
const WALL_US: u64 = 3_000;

/// What spans of engines and workers are called.
const NAMES: &str = "scheduler.schedule; executor.execute_model; scheduler.update_from_output; WorkerWrapperBase.execute_model; \
    Worker: execute_step; model_runner.sample; connector.wait_for_save; my_kv_transfer; gc.collect; gc; matmul; matmul; http.request; \
    Scheduler.batch_decode; nothing; sample; model_runner:  execute_model; executor. sample_tokens; resample; executor.execute_step; \
    OutputProcessor.process_outputs";

/// A server of three engines with two workers each, and a device of each worker whose name says so. Engines have pids from 10 on, workers from 20, devices from 30.
pub(crate) fn at_random(seed: u64) -> Vec<Value> {
    let mut numbers = Numbers::new(seed);
    // Perfetto keeps the times of the trace, and the report counts from its first event, so that one is at 0.
    let mut text = "i 9 0 begin\n".to_owned();
    for number in 0..ENGINES {
        let pid = 10 + number;
        text += &format!("P {pid} engine-{number} 'pid {pid}'\n");
    }
    for number in 0..WORKERS {
        let (pid, device) = (20 + number, 30 + number);
        text += &format!("P {pid} w{number} 'pid {pid}'\n");
        text += &format!("P {device} 'NPU {number} · w{number}' 'NPU {number}, pid {pid}'\n");
    }
    for nth in 0..EVENTS {
        let worker = numbers.below(WORKERS);
        let (engine, device) = (10 + worker / 2, 30 + worker);
        // Each on a thread of its own: Perfetto drops what overlaps.
        let thread = 1_000 + nth;
        text += &match numbers.below(9) {
            0..3 => kernel(&mut numbers, &format!("{device}/{thread}")),
            3 => counts(&mut numbers, &format!("{engine}/{thread}")),
            4 => span(&mut numbers, worker / 2, nth, &format!("{engine}/{thread}")),
            5 => moments(&mut numbers, nth, engine),
            _ => span(
                &mut numbers,
                worker / 2,
                nth,
                &format!("{}/{thread}", 20 + worker),
            ),
        };
        text += "\n";
    }
    events(&text)
}

/// A slice of a device; most say how long they were launched before.
fn kernel(numbers: &mut Numbers, place: &str) -> String {
    let args = match numbers.below(80) {
        queue_us @ 0..60 => format!("queue_us={queue_us}"),
        60..65 => "queue_us=-3".to_owned(),
        65..68 => "queue_us=1e17".to_owned(),
        _ => String::new(),
    };
    let (dur, ts) = (1 + numbers.below(60), numbers.below(WALL_US));
    format!("X {place} {ts}+{dur} matmul cat=kernel {args}")
}

/// What an engine's scheduler has, as far as it says so.
fn counts(numbers: &mut Numbers, place: &str) -> String {
    let mut level = || match numbers.below(8) {
        0 => "-1".to_owned(),
        1 => "0.25".to_owned(),
        2 => "5e9".to_owned(),
        level => (level % 2).to_string(),
    };
    let (running, waiting) = (level(), level());
    let args = match numbers.below(4) {
        0 => format!("running={running}"),
        1 => format!("waiting={waiting}"),
        _ => format!("running={running} waiting={waiting}"),
    };
    let ts = numbers.below(WALL_US);
    format!("C {place} {ts} requests {args}")
}

/// Returns some moments of a request in any order, or the begin of a request that does not end.
fn moments(numbers: &mut Numbers, nth: u64, engine: u64) -> String {
    let thread = 1_000_000 * (nth + 1);
    if nth > EVENTS - 20 {
        let ts = numbers.below(WALL_US);
        return format!("B {engine}/{thread} {ts} http.request request_id=m{nth}");
    }
    let mut text = String::new();
    let moments = "queued scheduled first_token token finished answered";
    for (name, thread) in moments.split(' ').zip(thread..) {
        let ts = numbers.below(WALL_US);
        if numbers.below(3) > 0 {
            text += &format!("i {engine}/{thread} {ts} request.{name} request_id=m{nth}\n");
        }
    }
    text
}

/// A span of an engine or one of its workers. Those of the first two engines name requests; the last one's name none.
fn span(numbers: &mut Numbers, engine: u64, nth: u64, place: &str) -> String {
    let names: Vec<&str> = NAMES.split("; ").collect();
    let name = names[usize::try_from(numbers.below(names.len() as u64)).unwrap()];
    let id = format!("r{engine}-{}", numbers.below(9));
    let (dur, ts) = (1 + numbers.below(60), numbers.below(WALL_US));
    let args = match (name, numbers.below(3)) {
        ("http.request", 0) => format!("request_id={id}-{nth}"),
        ("http.request", how) => {
            let waited_us = numbers.below(40_000) as f64 / 1e3;
            let mut args = format!("request_id={id}-{nth} waited_us={waited_us}");
            if how == 1 {
                let answered_us = waited_us + numbers.below(dur) as f64;
                args += &format!(" answered_us={answered_us}");
            }
            args
        }
        (_, 0) if engine == 0 => format!(r#"request_ids=["{id}","another"]"#),
        (_, 0) if engine == 1 => format!(r#"request_ids=["{id}"]"#),
        _ => String::new(),
    };
    let category = if name == "matmul" { "kernel" } else { "step" };
    format!("X {place} {ts}+{dur} '{name}' cat={category} {args}")
}
