//! Interrupted runs: no process is left, and the recorded events are merged.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{Workplace, wait_for};

/// Maximum duration of a stop, which is shorter than the run would take.
const STOP_LIMIT: Duration = Duration::from_secs(30);

#[test]
fn an_interrupt_stops_everything_and_merges() {
    let signal = Signal::SIGINT;
    let workplace = Workplace::new();
    let running = workplace.start("--requests 5000 --tokens 24");
    workplace.wait_for_steps();
    running.signal(signal);
    let asked = Instant::now();
    let finished = running.finish().expect(128 + signal as i32);
    assert!(asked.elapsed() < STOP_LIMIT, "{:?}", asked.elapsed());
    finished.assert_line("ended", signal.as_str());
    assert!(
        finished.line("requests").ends_with("not finished"),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains("trouble"), "{}", finished.stdout);
    assert_eq!(workplace.processes(), [] as [i32; 0]);
    let trace = workplace.trace();
    for process in "serving-demo serving-api engine-core worker-0 worker-1".split(' ') {
        trace.pid(process);
    }
    let mut events = trace.events.iter();
    let in_order = events.all(|event| event["args"]["unfinished"] != true);
    assert!(in_order, "every process ended in order");
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
    wait_for("end of the last process", || {
        workplace.processes().is_empty().then_some(())
    });
}
