//! Stops a victim after every instruction of what records, flushes, attaches and ends a thread, and kills it after every store that shows.
//!
//! Each region is gone through in two ways:
//!
//! 1. *Watching*: one victim is stepped through the whole region, one instruction at a time. Whenever the ring or the fragment has changed, both are
//!    read and judged as they stand. This numbers the visible stores.
//! 2. *Killing*: for chosen numbers a fresh victim is stepped to just after that store and killed there with SIGKILL; the second reader and the merge
//!    must find everything. The numbers are spread evenly over the region; `SA_PROFILE_FULL=1` takes every one of them.
//!
//! A system call counts as one instruction: what a `writev` leaves when it is killed half way is met by the random kills of `kill.rs`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it found, and fails where it stands"
)]

use std::time::Instant;

use e2e::chance::is_full;
use e2e::ledger::{Seen, judge};
use e2e::merged;
use e2e::order::Pattern;
use e2e::stepped::{Step, Stepped, can_trace};
use e2e::verdict::Verdict;
use format_oracle::reader::read_dir_as;

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
/// Most kills of one region in the short version.
const KILLS: usize = 8;

/// What watching a region found.
struct Watched {
    instructions: u64,
    stores: usize,
    verdict: Verdict,
}

fn judge_reader(stepped: &Stepped) -> Verdict {
    let seen = Seen::by_second_reader(read_dir_as(&stepped.victim.directory()));
    judge(&seen, &stepped.victim.progress, 1)
}

fn judge_merge(stepped: &Stepped) -> Verdict {
    let victim = &stepped.victim;
    judge(
        &merged::merge(&victim.directory(), &victim.scratch("trace.json")),
        &victim.progress,
        1,
    )
}

/// Steps one victim through the region and judges what a reader sees after each store.
fn watch(pattern: Pattern) -> Watched {
    let mut stepped = Stepped::start(VICTIM, pattern);
    let mut verdict = judge_reader(&stepped);
    loop {
        match stepped.step() {
            Step::Quiet => {}
            Step::Stored => verdict += judge_reader(&stepped),
            Step::Left => break,
            Step::Stuck => panic!(
                "{pattern:?}: stuck after {} instructions",
                stepped.instructions
            ),
        }
    }
    stepped.kill();
    Watched {
        instructions: stepped.instructions,
        stores: stepped.stores,
        verdict,
    }
}

/// Steps a fresh victim to just after its `number`th visible store, kills it, and judges by reader and merge.
fn kill_after(pattern: Pattern, number: usize) -> (Verdict, Verdict) {
    let mut stepped = Stepped::start(VICTIM, pattern);
    while stepped.stores < number && matches!(stepped.step(), Step::Quiet | Step::Stored) {}
    stepped.kill();
    (judge_reader(&stepped), judge_merge(&stepped))
}

fn sweep(test: &str, pattern: Pattern, least_stores: usize) {
    if let Err(error) = can_trace() {
        eprintln!("SKIPPED {test}: a child cannot be traced here: {error}");
        return;
    }
    let begun = Instant::now();
    let Watched {
        instructions,
        stores,
        verdict,
    } = watch(pattern);
    let stride = if is_full() {
        1
    } else {
        stores.div_ceil(KILLS).max(1)
    };
    let (mut second, mut merge) = (Verdict::default(), Verdict::default());
    for number in (0..=stores).step_by(stride) {
        let (read, merged) = kill_after(pattern, number);
        if !(read.is_clean() && merged.is_clean()) {
            println!("{pattern:?} killed after store {number}:\n  reader {read}\n  merge {merged}");
        }
        second += read;
        merge += merged;
    }
    let (kills, seconds) = (second.checks, begun.elapsed().as_secs());
    println!(
        "STEP {pattern:?} instructions={instructions} stores={stores} kills={kills} seconds={seconds}"
    );
    println!("  watched: {verdict}\n  killed, second reader: {second}\n  killed, merge: {merge}");
    assert!(
        stores >= least_stores,
        "only {stores} stores were seen: the region was not stepped"
    );
    assert!(verdict.is_clean() && second.is_clean() && merge.is_clean());
}

#[test]
fn begin_and_end_of_a_span() {
    sweep("begin_and_end_of_a_span", Pattern::StepSpan, 10);
}

#[test]
fn flush() {
    sweep("flush", Pattern::StepFlush, 40);
}

#[test]
fn first_event_of_a_thread() {
    sweep("first_event_of_a_thread", Pattern::StepAttach, 20);
}

#[test]
fn end_of_a_thread() {
    sweep("end_of_a_thread", Pattern::StepDetach, 3);
}
