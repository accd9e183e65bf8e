//! Stops a victim after every instruction that records, flushes, attaches a thread or ends it, and kills victims after each visible store.
//!
//! Each region is examined in two ways:
//!
//! 1. *Watching*: one victim is stepped through the whole region. Whenever the ring or the fragment has changed, both are read and judged in that state.
//!    This numbers the visible stores.
//! 2. *Killing*: for some of these numbers, a new victim is stepped to just after that store and killed with SIGKILL. `format-oracle` and the merge
//!    must find everything. The numbers are spread evenly over the region. `SA_PROFILE_FULL=1` uses all of them.
//!
//! A system call counts as one instruction. States inside a `writev` are only tested by the random kills of `crash.rs`.

use crate::HOST;
use e2e::chance::rounds;
use e2e::host_support::skip;
use e2e::ledger::{Lack, Readout, Verdict, autopsy, judge};
use e2e::order::Pattern;
use e2e::stepped::{Step, Stepped};

/// Maximum number of kills per region in the short version.
const KILLS: usize = 3;

fn judge_reader(stepped: &Stepped) -> Verdict {
    let readout = Readout::by_oracle(&stepped.victim.directory());
    judge(&readout, &stepped.victim.progress, 1, Lack::Nothing)
}

/// Steps one victim through the region, judges the files after each store, and kills it at the end. Returns the number of stores and the verdict.
fn watch(mut stepped: Stepped) -> (usize, Verdict) {
    let mut verdict = judge_reader(&stepped);
    loop {
        match stepped.step() {
            Step::Quiet => {}
            Step::Stored => verdict += judge_reader(&stepped),
            Step::Left => break,
        }
    }
    stepped.kill();
    verdict += autopsy(&stepped.victim, Lack::Nothing);
    (stepped.stores, verdict)
}

/// Steps a new victim to just after its visible store `number`, kills it, and judges its files with both readers.
fn kill_after(mut stepped: Stepped, number: usize) -> Verdict {
    while stepped.stores < number && stepped.step() != Step::Left {}
    stepped.kill();
    autopsy(&stepped.victim, Lack::Nothing)
}

fn sweep(pattern: Pattern, least_stores: usize) {
    let start = || Stepped::start(HOST, pattern);
    let first = match start() {
        Ok(first) => first,
        Err(error) => return skip(&format!("a child cannot be traced here: {error}")),
    };
    let (stores, verdict) = watch(first);
    let stride = stores.div_ceil(rounds(KILLS, stores)).max(1);
    let mut killed = Verdict::default();
    for number in (0..stores).step_by(stride) {
        let one = kill_after(start().unwrap(), number);
        let is_clean = one.is_clean();
        assert!(is_clean, "{pattern:?} killed after store {number}: {one:?}");
        killed += one;
    }
    println!("STEP {pattern:?} stores={stores}\n  watched: {verdict:?}\n  killed: {killed:?}");
    assert!(stores >= least_stores, "only {stores} visible stores");
    assert!(verdict.is_clean(), "{verdict:?}");
}

#[test]
fn begin_and_end_of_a_span() {
    sweep(Pattern::StepSpan, 10);
}

#[test]
fn flush() {
    sweep(Pattern::StepFlush, 40);
}

#[test]
fn first_event_of_a_thread() {
    sweep(Pattern::StepAttach, 20);
}

#[test]
fn end_of_a_thread() {
    sweep(Pattern::StepDetach, 3);
}
