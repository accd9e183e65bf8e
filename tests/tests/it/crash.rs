//! A process that ends in any way while its threads record loses nothing acknowledged. No event is torn or duplicated, and open spans are shown.

use crate::{HOST, victim};
use e2e::chance::{Chance, rounds};
use e2e::host_support::Outcome;
use e2e::ledger::{Lack, Verdict, autopsy, snapshot};
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};
use trace_merge::Options;

const THREADS: usize = 4;
const BOTH: &[Pattern] = &[Pattern::Flat, Pattern::Nested];
const FLAT: &[Pattern] = &[Pattern::Flat];

/// Waits until the threads have recorded all of their spans.
fn wait_for_threads(victim: &Victim) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while snapshot(&victim.progress, THREADS)
        .iter()
        .any(|count| *count < 20_000)
    {
        assert!(Instant::now() < deadline, "the threads did not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a victim at a random moment and judges its files. A victim that does not end by itself gets a SIGTERM.
fn end(ending: Ending, pattern: Pattern, chance: &mut Chance) -> (Verdict, Outcome) {
    let mut victim = Victim::start(HOST, Order::new(THREADS, pattern, ending), &[]);
    victim.wait_ready();
    std::thread::sleep(chance.pause(Duration::from_millis(20)));
    if ending == Ending::ThreadsEnd {
        wait_for_threads(&victim);
    }
    victim.go();
    let outcome = match ending {
        Ending::Never => victim.terminate(),
        _ => victim.end(),
    };
    let words = &outcome.stderr;
    assert!(!words.contains("sa-profile"), "{ending:?}: {words}");
    (autopsy(&victim, Lack::Nothing), outcome)
}

#[test]
fn however_a_process_ends_nothing_acknowledged_is_lost() {
    let mut chance = Chance::new();
    for (ending, patterns, code, signal) in [
        (Ending::Abort, BOTH, None, Some(libc::SIGABRT)),
        (Ending::QuickExit, BOTH, Some(7), None),
        (Ending::Never, BOTH, None, Some(libc::SIGTERM)),
        (Ending::Segv, BOTH, None, Some(libc::SIGSEGV)),
        (
            Ending::Exit,
            &[Pattern::Flat, Pattern::Nested, Pattern::Churn],
            Some(8),
            None,
        ),
        (Ending::ExitFromThread, FLAT, Some(8), None),
        (Ending::Panic, BOTH, Some(101), None),
        (Ending::Return, BOTH, Some(7), None),
        (Ending::ThreadsEnd, FLAT, Some(7), None),
        (Ending::Finish, BOTH, Some(7), None),
    ] {
        for pattern in patterns {
            let mut all = Verdict::default();
            for _ in 0..rounds(1, 9) {
                let (verdict, outcome) = end(ending, *pattern, &mut chance);
                let status = (outcome.status.code(), outcome.status.signal());
                assert_eq!(status, (code, signal), "{ending:?}");
                all += verdict;
            }
            println!("END {ending:?} {pattern:?} seed={}: {all:?}", chance.seed);
            assert!(all.acknowledged > 0 && all.is_clean(), "{all:?}");
        }
    }
}

#[test]
fn a_kill_at_full_speed_loses_nothing_acknowledged() {
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
            victim.kill();
            let verdict = autopsy(&victim, Lack::Nothing);
            if !verdict.is_clean() {
                println!("kept in {}", victim.keep().display());
            }
            all += verdict;
        }
        println!(
            "KILL {pattern:?} threads={threads} seed={}: {all:?}",
            chance.seed
        );
        assert!(all.acknowledged > 0 && all.is_clean(), "{all:?}");
    }
}

/// Kills victims during their start. Existing files are readable, and nothing acknowledged is missing.
#[test]
fn a_kill_during_the_start_loses_nothing_acknowledged() {
    let mut chance = Chance::new();
    let (mut all, mut silent) = (Verdict::default(), 0);
    for _ in 0..rounds(8, 60) {
        let order = Order::new(1, Pattern::Flat, Ending::Never);
        let mut victim = Victim::start(HOST, order, &[]);
        std::thread::sleep(Duration::from_micros(chance.below(5_000) as u64));
        victim.kill();
        if snapshot(&victim.progress, 1) == [0] {
            // The victim had recorded nothing. The merge may report incomplete files, but must not fail on them with a panic.
            silent += 1;
            let _ = trace_merge::merge(&Options::new([victim.directory()]));
        } else {
            all += autopsy(&victim, Lack::Nothing);
        }
    }
    println!("KILL start seed={} silent={silent}: {all:?}", chance.seed);
    assert!(all.is_clean(), "{all:?}");
}
