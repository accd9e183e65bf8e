//! Runs in which a process is killed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Finished, Workplace};

/// Returns the name and the step of the killed worker, from the demo's output.
fn killed(finished: &Finished) -> (String, u64) {
    let line = finished.line("killed");
    let words: Vec<&str> = line.split(' ').collect();
    (words[0].to_owned(), words[words.len() - 1].parse().unwrap())
}

#[test]
fn a_worker_killed_in_mid_step_leaves_the_step_open_and_the_others_continue() {
    let workplace = Workplace::new();
    let finished = workplace
        .run("--requests 12 --concurrency 4 --tokens 8 --kill-worker")
        .expect(0);
    let (worker, step) = killed(&finished);
    assert_eq!(worker, "worker-1");
    finished.assert_line("failed", "worker-1 died");

    let trace = workplace.trace();
    let is_open = |event: &&Value| event["args"]["unfinished"] == true;
    let open: Vec<_> = trace.events.iter().filter(is_open).collect();
    assert_eq!(open[0]["name"], "WorkerProcess.execute_step", "{open:?}");
    let worker_1 = trace.pid("worker-1");
    assert!(open.iter().all(|event| event["pid"] == *worker_1));
    let finished_steps = trace.named_in("worker-1", "WorkerProcess.execute_step");
    let finished_steps = finished_steps.into_iter().filter(|event| !is_open(event));
    let step_of = |event: &Value| event["args"]["step"].as_u64().unwrap();
    let last = finished_steps.map(step_of).max();
    assert_eq!(last, Some(step - 1), "all earlier steps are complete");
    let later = trace.named_in("worker-0", "WorkerProcess.execute_step");
    assert!(later.into_iter().any(|event| step_of(event) > step));
    let (ok, failed) = finished.line("requests").split_once(" ok, ").unwrap();
    let failed = failed.split(' ').next().unwrap();
    let [ok, failed]: [usize; 2] = [ok, failed].map(|number| number.parse().unwrap());
    assert_eq!(ok + failed, 12);
    assert!(
        (1..=4).contains(&failed),
        "only the requests in the batch: {failed}"
    );
}

#[test]
fn a_dead_engine_core_ends_the_run_with_a_trace_and_an_error() {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 500 --tokens 8");
    workplace.wait_for_steps();
    kill(Pid::from_raw(workplace.child("Engine")), Signal::SIGKILL).unwrap();
    let finished = running.finish().expect(1);
    finished.assert_line("trouble", "engine-core ended by signal 9");
    finished.assert_line("failed", "engine core is gone");
    assert!(
        !workplace
            .trace()
            .named_in("engine-core", "scheduler.schedule")
            .is_empty()
    );
}
