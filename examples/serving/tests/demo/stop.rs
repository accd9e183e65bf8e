//! Runs that end before their time: nothing is left running, and what was recorded is merged.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Finished, Workplace, wait_for};

/// Longer than any test run would last by itself is too long for a stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

fn stops_cleanly_by(signal: Signal) {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 5000 --tokens 24");
    workplace.wait_for_steps();
    running.signal(signal);
    let asked = Instant::now();
    let finished = running.finish().expect(128 + signal as i32);
    assert!(asked.elapsed() < STOP_LIMIT, "{:?}", asked.elapsed());
    assert!(
        finished.line("ended").contains(signal.as_str()),
        "{}",
        finished.stdout
    );
    assert!(
        finished.line("requests").ends_with("not finished"),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains("trouble"), "{}", finished.stdout);
    assert_eq!(workplace.processes(), [] as [i32; 0]);
    let trace = workplace.trace();
    for process in [
        "serving-demo",
        "serving-api",
        "engine-core",
        "worker-0",
        "worker-1",
    ] {
        trace.pid(process);
    }
    assert!(
        trace
            .events
            .iter()
            .all(|event| event["args"]["unfinished"] != true),
        "every process ended in order"
    );
}

#[test]
fn an_interrupt_stops_everything_and_merges() {
    stops_cleanly_by(Signal::SIGINT);
}

#[test]
fn a_termination_signal_stops_everything_and_merges() {
    stops_cleanly_by(Signal::SIGTERM);
}

#[test]
fn a_killed_launcher_leaves_no_orphan() {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 5000 --tokens 24 --workers 3");
    workplace.wait_for_steps();
    assert_eq!(
        workplace.processes().len(),
        6,
        "launcher, API, engine core and three workers"
    );
    running.signal(Signal::SIGKILL);
    assert_eq!(running.finish().code, None);
    wait_for("the end of the last process", || {
        workplace.processes().is_empty().then_some(())
    });
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 5000 --tokens 24");
    workplace.wait_for_steps();
    // A worker that stands still cannot stop in order.
    let worker = nix::unistd::Pid::from_raw(workplace.child("\"Worker\":{\"index\":1"));
    nix::sys::signal::kill(worker, Signal::SIGSTOP).unwrap();
    running.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::SIGINT);
    let finished = running.finish().expect(130);
    assert_eq!(finished.stdout, "", "no merge, no report");
    wait_for("the end of the last process", || {
        workplace.processes().is_empty().then_some(())
    });
}

/// What a run says that was interrupted before all its processes served.
const STARTING: &str = "the processes were still coming up, and were killed";

/// A signal at any moment ends the run at once, in order or not, with nothing left running and nothing half merged.
fn ends_after(delay_ms: u64, signal: Signal) -> Finished {
    let workplace = Workplace::new();
    let running = workplace.start("--requests 5000 --tokens 24");
    sleep(Duration::from_millis(delay_ms));
    running.signal(signal);
    let asked = Instant::now();
    let finished = running.finish();
    let context = format!("{delay_ms} ms: {}{}", finished.stdout, finished.stderr);
    assert!(asked.elapsed() < STOP_LIMIT, "{context}");
    assert_eq!(workplace.processes(), [] as [i32; 0], "{context}");
    let trace = workplace.path("profile_out/trace.json");
    match finished.code {
        // Before the launcher watched for signals.
        None => assert!(!trace.exists(), "{context}"),
        Some(code) => {
            assert_eq!(code, 128 + signal as i32, "{context}");
            assert_eq!(finished.stderr, "", "{context}");
            assert!(!finished.stdout.contains("trouble"), "{context}");
            let trace = workplace.trace();
            trace.pid("serving-demo");
            assert_eq!(trace.named("run.interrupted").count(), 1, "{context}");
        }
    }
    finished
}

#[test]
fn a_signal_at_any_moment_of_the_start_ends_the_run() {
    for delay_ms in [0, 3, 10, 30, 60, 100, 200, 400, 800] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            ends_after(delay_ms, signal);
        }
    }
}

/// Interrupts a run whose last worker stands still; `None` if that one had come up before.
fn interrupted_start(workplace: &Workplace, arguments: &str) -> Option<Finished> {
    let running = workplace.start(&format!("--requests 5000 --tokens 24 {arguments}"));
    let worker = Pid::from_raw(workplace.child("\"Worker\":{\"index\":1"));
    kill(worker, Signal::SIGSTOP).unwrap();
    sleep(Duration::from_millis(200));
    running.signal(Signal::SIGINT);
    let asked = Instant::now();
    let finished = running.finish().expect(130);
    assert_eq!(workplace.processes(), [] as [i32; 0]);
    let in_time = finished.stdout.contains(STARTING);
    assert!(
        !in_time || asked.elapsed() < STOP_LIMIT,
        "{:?}",
        asked.elapsed()
    );
    in_time.then_some(finished)
}

/// The same, until the worker was caught while it came up.
fn interrupt_a_start(arguments: &str) -> (Workplace, Finished) {
    let attempts = (0..5).find_map(|_| {
        let workplace = Workplace::new();
        let finished = interrupted_start(&workplace, arguments)?;
        Some((workplace, finished))
    });
    attempts.expect("an interruption while a worker comes up")
}

#[test]
fn an_interrupt_does_not_wait_for_a_worker_that_does_not_come_up() {
    let (workplace, finished) = interrupt_a_start("");
    assert!(
        finished.line("requests").ends_with("5000 not finished"),
        "{}",
        finished.stdout
    );
    let trace = workplace.trace();
    for process in ["serving-demo", "engine-core"] {
        trace.pid(process);
    }
}

#[test]
fn an_interrupted_start_merges_nothing_that_was_not_to_be_merged() {
    let (workplace, _) = interrupt_a_start("--no-merge");
    assert!(workplace.path("profile_out/fragments").exists());
    assert!(!workplace.path("profile_out/trace.json").exists());
}
