//! Reading while 16 threads record and flush: never torn, never doubled, nothing missing below what was acknowledged before the read began.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use e2e::chance::{Chance, is_full, rounds};
use e2e::ledger::{Seen, compare_live, judge, snapshot};
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::progress::Control;
use e2e::verdict::Verdict;
use e2e::victim::Victim;
use format_oracle::reader::read_dir_as;

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const THREADS: usize = 16;
/// Spans that each thread records in bursts while it is read.
const BURST_SPANS: u64 = 8_000;

fn start(pattern: Pattern) -> Victim {
    let mut victim = Victim::start(
        VICTIM,
        Order {
            threads: THREADS,
            pattern,
            ending: Ending::Never,
        },
    )
    .unwrap();
    victim.wait_ready().unwrap();
    victim
}

fn read(victim: &Victim) -> Verdict {
    let floor = snapshot(&victim.progress, THREADS);
    compare_live(
        &Seen::by_second_reader(read_dir_as(&victim.directory())),
        &floor,
    )
}

fn merge(victim: &Victim) -> Verdict {
    let floor = snapshot(&victim.progress, THREADS);
    compare_live(
        &merged::merge(&victim.directory(), &victim.scratch("trace.json")),
        &floor,
    )
}

/// Bursts and flushes, read over and over; then a kill, and everything is still there. The threads may record so much more with each look, and no
/// more: a reader that a busy machine holds up would otherwise have ever more to read.
#[test]
fn bursts_and_flushes() {
    let mut victim = start(Pattern::Bursts);
    let (mut second, mut merged) = (Verdict::default(), Verdict::default());
    let looks = if is_full() { 40 } else { 8 };
    let allowed = victim.progress.control(Control::Allowed);
    for look in 1..=looks {
        allowed.store(BURST_SPANS * look / looks, Release);
        if look % 2 == 0 {
            merged += merge(&victim);
        } else {
            second += read(&victim);
        }
    }
    let flushes = victim.progress.control(Control::Flushes).load(Relaxed);
    victim.kill().unwrap();
    let seen = Seen::by_second_reader(read_dir_as(&victim.directory()));
    let last = judge(&seen, &victim.progress, THREADS);
    let last_merge = judge(
        &merged::merge(&victim.directory(), &victim.scratch("last.json")),
        &victim.progress,
        THREADS,
    );
    println!(
        "LIVE bursts threads={THREADS} own_flushes={flushes}\n  second reader: {second}\n  merge: {merged}"
    );
    println!("  after the kill, second reader: {last}\n  after the kill, merge: {last_merge}");
    assert!(flushes > 0 && second.checks > 1 && merged.checks > 1);
    assert!(second.is_clean() && merged.is_clean() && last.is_clean() && last_merge.is_clean());
}

/// Full speed, where every ring is always being written and flushed; each victim is read while it is young, before there is too much to read.
#[test]
fn full_speed() {
    let mut chance = Chance::new();
    let (mut second, mut merged) = (Verdict::default(), Verdict::default());
    for round in 0..rounds(10) {
        let mut victim = start(Pattern::Sprint);
        std::thread::sleep(chance.pause(Duration::from_millis(10)));
        if round % 2 == 0 {
            second += read(&victim);
            merged += merge(&victim);
        } else {
            merged += merge(&victim);
            second += read(&victim);
        }
        victim.kill().unwrap();
    }
    println!(
        "LIVE full speed threads={THREADS} seed={}\n  second reader: {second}\n  merge: {merged}",
        chance.seed
    );
    assert!(second.is_clean() && merged.is_clean());
}

/// Threads that end and start anew, so that slots change hands while they are read.
#[test]
fn threads_that_come_and_go() {
    let (mut second, mut merged) = (Verdict::default(), Verdict::default());
    for _ in 0..rounds(4) {
        let mut victim = start(Pattern::Churn);
        for _ in 0..3 {
            second += read(&victim);
            merged += merge(&victim);
        }
        victim.kill().unwrap();
    }
    println!("LIVE churn threads={THREADS}\n  second reader: {second}\n  merge: {merged}");
    assert!(second.is_clean() && merged.is_clean());
}
