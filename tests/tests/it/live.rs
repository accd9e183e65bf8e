//! Reading while 16 threads record and flush: no event is torn or duplicated, and every event acknowledged before the read began is there.

use crate::victim;
use e2e::chance::{Chance, rounds};
use e2e::ledger::{Lack, Verdict, autopsy, judge_live, snapshot};
use e2e::order::Pattern;
use e2e::progress::Control;
use e2e::victim::Victim;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

const THREADS: usize = 16;
/// Number of spans that each thread records in bursts while it is read.
const BURST_SPANS: u64 = 8_000;

fn read(victim: &Victim) -> Verdict {
    let floor = snapshot(&victim.progress, THREADS);
    judge_live(&victim.directory(), &floor, Lack::Nothing)
}

/// Reads bursts and flushes repeatedly, then kills the victim and checks that everything is still there. Between two reads the threads may record only
/// a fixed number of spans. Otherwise, a reader delayed by a busy machine would have more and more to read.
#[test]
fn bursts_and_flushes() {
    let mut victim = victim(THREADS, Pattern::Bursts, &[]);
    let mut all = Verdict::default();
    let reads = rounds(3, 20) as u64;
    let allowed = victim.progress.control(Control::Allowed);
    for number in 1..=reads {
        allowed.store(BURST_SPANS * number / reads, Release);
        all += read(&victim);
    }
    let flushes = victim.progress.control(Control::Flushes).load(Relaxed);
    victim.kill();
    let last = autopsy(&victim, Lack::Nothing);
    println!("LIVE bursts own_flushes={flushes}: {all:?}\n  after the kill: {last:?}");
    assert!(flushes > 0 && all.is_clean() && last.is_clean());
}

/// At full speed every ring is constantly written and flushed, and slots change their owner as threads come and go. Each victim is read soon after its start,
/// before there is too much to read.
#[test]
fn full_speed() {
    let mut chance = Chance::new();
    for pattern in [Pattern::Sprint, Pattern::Churn] {
        let mut all = Verdict::default();
        for _ in 0..rounds(3, 20) {
            let mut victim = victim(THREADS, pattern, &[]);
            std::thread::sleep(chance.pause(Duration::from_millis(10)));
            all += read(&victim);
            victim.kill();
        }
        println!("LIVE {pattern:?} seed={}: {all:?}", chance.seed);
        assert!(all.is_clean(), "{all:?}");
    }
}
