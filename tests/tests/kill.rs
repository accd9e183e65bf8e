//! SIGKILL at random moments at full speed: nothing acknowledged is lost, nothing torn, nothing doubled, open spans are shown.
//!
//! Each kill is judged by the second reader, by the merge, and by the second reader again after the merge.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it stands"
)]

use std::time::Duration;

use e2e::autopsy::judge_both;
use e2e::chance::{Chance, rounds};
use e2e::ledger::snapshot;
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::verdict::Verdict;
use e2e::victim::Victim;

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");

/// Kills `count` victims at random moments, prints what was found, and fails if anything is wrong.
fn kill_many(name: &str, threads: usize, pattern: Pattern, count: usize) {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let (mut second, mut merge) = (Verdict::default(), Verdict::default());
    for round in 0..count {
        let order = Order {
            threads,
            pattern,
            ending: Ending::Never,
        };
        let mut victim = Victim::start(VICTIM, order).unwrap();
        victim.wait_ready().unwrap();
        std::thread::sleep(chance.pause(Duration::from_millis(40)));
        victim.kill().unwrap();
        let (read, merged) = judge_both(&victim);
        if !(read.is_clean() && merged.is_clean()) {
            println!(
                "round {round}: kept in {}\n  reader {read}\n  merge {merged}",
                victim.keep().display()
            );
        }
        second += read;
        merge += merged;
    }
    println!(
        "KILL {name} threads={threads} kills={count} seed={seed}\n  second reader: {second}\n  merge: {merge}"
    );
    assert!(second.acknowledged > 0 && second.is_clean() && merge.is_clean());
}

#[test]
fn one_thread() {
    kill_many("flat", 1, Pattern::Flat, rounds(16));
}

#[test]
fn four_threads() {
    kill_many("flat", 4, Pattern::Flat, rounds(16));
}

#[test]
fn one_thread_with_open_spans() {
    kill_many("nested", 1, Pattern::Nested, rounds(10));
}

#[test]
fn four_threads_with_open_spans() {
    kill_many("nested", 4, Pattern::Nested, rounds(10));
}

#[test]
fn threads_that_come_and_go() {
    kill_many("churn", 4, Pattern::Churn, rounds(10));
}

/// Killed while it starts, whatever exists by then is readable, and nothing that was acknowledged is missing.
#[test]
fn while_it_starts() {
    let mut chance = Chance::new();
    let (seed, count) = (chance.seed, rounds(20));
    let (mut second, mut merge, mut silent) = (Verdict::default(), Verdict::default(), 0);
    for _ in 0..count {
        let order = Order {
            threads: 1,
            pattern: Pattern::Flat,
            ending: Ending::Never,
        };
        let mut victim = Victim::start(VICTIM, order).unwrap();
        std::thread::sleep(Duration::from_micros(
            chance.below(5_000).try_into().unwrap(),
        ));
        victim.kill().unwrap();
        if snapshot(&victim.progress, 1) == [0] {
            // It had recorded nothing; files that were only half made by then may be reported, but must not trip anybody up.
            silent += 1;
            let _ = merged::try_merge(&victim.directory(), &victim.scratch("trace.json"));
            continue;
        }
        let (read, merged) = judge_both(&victim);
        second += read;
        merge += merged;
    }
    println!(
        "KILL start kills={count} seed={seed} before_the_first_span={silent}\n  second reader: {second}\n  merge: {merge}"
    );
    assert!(second.is_clean() && merge.is_clean());
}
