//! Runs in which a process is killed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Finished, Workplace};

/// Name and step of the worker that the demo says it killed.
fn killed(finished: &Finished) -> (String, u64) {
    let line = finished.line("killed");
    let words: Vec<&str> = line.split(' ').collect();
    (words[0].to_owned(), words[words.len() - 1].parse().unwrap())
}

#[test]
fn a_worker_killed_in_mid_step_fails_its_requests_and_leaves_the_step_open() {
    let workplace = Workplace::new();
    let finished = workplace
        .run("--requests 12 --concurrency 4 --tokens 8 --kill-worker")
        .expect(0);
    let (worker, step) = killed(&finished);
    assert_eq!(worker, "worker-1");
    assert!(
        finished.line("failed").contains("worker-1 died"),
        "{}",
        finished.stdout
    );

    let trace = workplace.trace();
    let open: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event["args"]["unfinished"] == true)
        .collect();
    let names: Vec<_> = open
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names.first(),
        Some(&"WorkerProcess.execute_step"),
        "{names:?}"
    );
    assert!(
        open.iter()
            .all(|event| event["pid"] == *trace.pid("worker-1"))
    );
    let finished_steps = trace.of("worker-1", "WorkerProcess.execute_step");
    let finished_steps = finished_steps
        .iter()
        .filter(|event| event["args"]["unfinished"] != true)
        .filter_map(|event| event["args"]["step"].as_u64());
    assert_eq!(
        finished_steps.max(),
        Some(step - 1),
        "all steps before the killed one are whole"
    );
}

#[test]
fn the_workers_that_remain_serve_on() {
    let workplace = Workplace::new();
    let finished = workplace
        .run("--requests 12 --concurrency 4 --tokens 8 --kill-worker")
        .expect(0);
    let (_, killed_step) = killed(&finished);
    let trace = workplace.trace();
    let later = trace.of("worker-0", "WorkerProcess.execute_step");
    let later = later
        .iter()
        .filter(|event| event["args"]["step"].as_u64().unwrap() > killed_step)
        .count();
    assert!(later > 0, "worker-0 went on");
    let loads = trace.of("worker-0", "WorkerProcess.init_device_and_model");
    let worlds: Vec<_> = loads
        .iter()
        .map(|event| event["args"]["world"].as_u64().unwrap())
        .collect();
    assert_eq!(worlds, [2, 1], "it took over the whole model");
    let (ok, failed) = finished.line("requests").split_once(" ok, ").unwrap();
    let (ok, failed): (usize, usize) = (
        ok.parse().unwrap(),
        failed.split(' ').next().unwrap().parse().unwrap(),
    );
    assert_eq!(ok + failed, 12);
    assert!(
        (1..=4).contains(&failed),
        "only those in the batch: {failed}"
    );
}

#[test]
fn without_any_worker_left_the_rest_fails_cleanly() {
    let workplace = Workplace::new();
    let finished = workplace
        .run("--requests 6 --concurrency 2 --tokens 4 --workers 1 --kill-worker")
        .expect(0);
    assert_eq!(killed(&finished).0, "worker-0");
    let failures: Vec<_> = finished
        .stdout
        .lines()
        .filter(|line| line.starts_with("failed"))
        .collect();
    assert!(
        failures
            .iter()
            .any(|line| line.contains("no worker is left")),
        "{failures:?}"
    );
    assert!(
        finished.line("requests").ends_with("failed"),
        "none is left without an answer: {}",
        finished.stdout
    );
    assert_eq!(workplace.processes(), [] as [i32; 0]);
}

#[test]
fn a_dead_engine_core_ends_the_run_with_a_trace_and_a_complaint() {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 500 --tokens 8");
    workplace.wait_for_steps();
    kill(Pid::from_raw(workplace.child("Engine")), Signal::SIGKILL).unwrap();
    let finished = running.finish().expect(1);
    assert!(
        finished
            .line("trouble")
            .contains("engine-core ended by signal 9"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.line("failed").contains("engine core is gone"),
        "{}",
        finished.stdout
    );
    assert!(
        !workplace
            .trace()
            .of("engine-core", "scheduler.schedule")
            .is_empty()
    );
}
