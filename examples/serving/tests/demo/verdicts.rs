//! Runs with one injected cause each, and runs without a cause. The verdict must name the injected cause, or none of the causes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::thread;
use std::time::Duration;
use trace_report::VerdictRule::{self, ConcurrencyCapped, Crash, KvFull, LittleLoad};
use trace_report::VerdictRule::{FrontendBound, Gc, ProcessStalled, TransferBound};

use crate::harness::Workplace;

/// The rules for the injected causes.
const INJECTED: [VerdictRule; 8] = [
    ConcurrencyCapped,
    KvFull,
    LittleLoad,
    Crash,
    ProcessStalled,
    Gc,
    FrontendBound,
    TransferBound,
];
/// Options for a load for which the batch and the cache have room.
const ROOM: &str = "--requests 24 --concurrency 6 --kv-blocks 400 --no-merge";
/// Time for which a process is stopped.
const STOPPED: Duration = Duration::from_secs(2);

/// Returns the rule of a finished run's verdict, and the text.
fn verdict(workplace: &Workplace) -> (VerdictRule, String) {
    let options = trace_merge::Options::new([workplace.path("profile_out")]);
    let report = trace_report::read(&options, &Default::default(), &Default::default()).unwrap();
    (report.verdict.rule, report.verdict.text)
}

#[test]
fn the_verdict_names_a_limit_that_the_options_set() {
    let runs = [
        // At most eight requests run at once.
        (
            "--concurrency 24 --requests 48 --kv-blocks 800 --no-merge",
            ConcurrencyCapped,
        ),
        (
            "--concurrency 8 --requests 24 --kv-blocks 16 --no-merge",
            KvFull,
        ),
        (
            "--concurrency 1 --requests 6 --kv-blocks 400 --no-merge",
            LittleLoad,
        ),
        (
            "--requests 24 --kv-blocks 400 --kill-worker --no-merge",
            Crash,
        ),
    ];
    for (arguments, rule) in runs {
        let workplace = Workplace::new();
        workplace.run(arguments).expect(0);
        let (found, text) = verdict(&workplace);
        assert_eq!(found, rule, "{arguments}: {text}");
    }
}

#[test]
fn the_verdict_names_a_process_that_was_stopped() {
    for (role, name) in [("Worker", "worker-"), ("Api", "serving-api")] {
        let workplace = Workplace::new();
        let running = workplace.start(ROOM);
        workplace.wait_for_steps();
        let pid = Pid::from_raw(workplace.child(role));
        kill(pid, Signal::SIGSTOP).unwrap();
        thread::sleep(STOPPED);
        kill(pid, Signal::SIGCONT).unwrap();
        running.finish().expect(0);
        let (found, text) = verdict(&workplace);
        assert_eq!(found, ProcessStalled, "{role}: {text}");
        assert!(text.starts_with(name), "{text}");
    }
}

/// Makes three runs, or 20 with `SA_PROFILE_FULL`.
#[test]
fn the_verdict_names_no_cause_in_a_normal_run() {
    let runs = match std::env::var_os("SA_PROFILE_FULL") {
        Some(_) => 20,
        None => 3,
    };
    for seed in 1..=runs {
        let workplace = Workplace::new();
        workplace.run(&format!("{ROOM} --seed {seed}")).expect(0);
        let (found, text) = verdict(&workplace);
        assert!(!INJECTED.contains(&found), "seed {seed}: {text}");
    }
}
