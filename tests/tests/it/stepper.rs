//! Stops a victim after every instruction of what records, flushes, attaches and ends a thread, and kills it after every store that shows.
//!
//! Each region is gone through in two ways:
//!
//! 1. *Watching*: one victim is stepped through the whole region, one instruction at a time. Whenever the ring or the fragment has changed, both are
//!    read and judged in that state. This numbers the visible stores.
//! 2. *Killing*: for chosen numbers a fresh victim is stepped to just after that store and killed there with SIGKILL; the second reader and the merge
//!    must find everything. The numbers are spread evenly over the region; `SA_PROFILE_FULL=1` takes every one of them.
//!
//! A system call counts as one instruction: what a `writev` leaves when it is killed half way is met by the random kills of `crash.rs`.

use crate::HOST;
use e2e::chance::rounds;
use e2e::host_support::skip;
use e2e::ledger::{Lack, Seen, Verdict, autopsy, judge};
use e2e::order::Pattern;
use e2e::stepped::{Step, Stepped};

/// Most kills of one region in the short version.
const KILLS: usize = 3;

fn judge_reader(stepped: &Stepped) -> Verdict {
    let seen = Seen::by_second_reader(&stepped.victim.directory());
    judge(&seen, &stepped.victim.progress, 1, Lack::Nothing)
}

/// Steps one victim through the region, judges what a reader sees after each store, and kills it at the end. Returns how many stores there were, too.
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

/// Steps a fresh victim to just after its `number`th visible store, kills it, and judges by reader and merge.
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
    assert!(stores >= least_stores, "{stores} stores were seen");
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
