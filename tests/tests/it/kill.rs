//! SIGKILL at random moments at full speed: nothing acknowledged is lost, nothing torn, nothing doubled, open spans are shown.

use crate::{VICTIM, victim};
use e2e::chance::{Chance, rounds};
use e2e::ledger::{Lack, Verdict, autopsy, snapshot};
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use std::time::Duration;
use trace_merge::Options;

#[test]
fn at_full_speed_nothing_acknowledged_is_lost() {
    let mut chance = Chance::new();
    for (threads, pattern) in [
        (1, Pattern::Flat),
        (4, Pattern::Flat),
        (1, Pattern::Nested),
        (4, Pattern::Nested),
        (4, Pattern::Churn),
    ] {
        let mut all = Verdict::default();
        for _ in 0..rounds(5, 40) {
            let mut victim = victim(threads, pattern, &[]);
            std::thread::sleep(chance.pause(Duration::from_millis(40)));
            victim.kill().unwrap();
            let verdict = autopsy(&victim, Lack::Nothing);
            if !verdict.is_clean() {
                println!("kept in {}", victim.keep().display());
            }
            all += verdict;
        }
        println!(
            "KILL {pattern:?} threads={threads} seed={}: {all}",
            chance.seed
        );
        assert!(all.acknowledged > 0 && all.is_clean(), "{all}");
    }
}

/// Killed while it starts, whatever exists by then is readable, and nothing that was acknowledged is missing.
#[test]
fn while_it_starts() {
    let mut chance = Chance::new();
    let (mut all, mut silent) = (Verdict::default(), 0);
    for _ in 0..rounds(8, 60) {
        let order = Order {
            threads: 1,
            pattern: Pattern::Flat,
            ending: Ending::Never,
        };
        let mut victim = Victim::start(VICTIM, order, &[]).unwrap();
        std::thread::sleep(Duration::from_micros(chance.below(5_000) as u64));
        victim.kill().unwrap();
        if snapshot(&victim.progress, 1) == [0] {
            // It had recorded nothing; files that were only half made by then may be reported, but must not trip anybody up.
            silent += 1;
            let _ = trace_merge::merge(&Options::new([victim.directory()]));
        } else {
            all += autopsy(&victim, Lack::Nothing);
        }
    }
    println!("KILL start seed={} silent={silent}: {all}", chance.seed);
    assert!(all.is_clean(), "{all}");
}
