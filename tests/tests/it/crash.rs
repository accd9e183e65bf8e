//! Every other way a process ends while its threads record: the same guarantees as after a kill.

use crate::VICTIM;
use e2e::chance::{Chance, rounds};
use e2e::ledger::{Lack, Verdict, autopsy};
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::Victim;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const BOTH: &[Pattern] = &[Pattern::Flat, Pattern::Nested];
const FLAT: &[Pattern] = &[Pattern::Flat];

/// Waits until the threads have recorded all they were going to.
fn wait_for_threads(victim: &Victim) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while (0..THREADS).any(|thread| victim.progress.acknowledged(thread).load(Acquire) < 20_000) {
        assert!(Instant::now() < deadline, "the threads did not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a victim at a random moment, and judges what it left. It never ends by itself, but by SIGTERM.
fn end(
    ending: Ending,
    pattern: Pattern,
    chance: &mut Chance,
) -> (Verdict, (Option<i32>, Option<i32>)) {
    let order = Order {
        threads: THREADS,
        pattern,
        ending,
    };
    let mut victim = Victim::start(VICTIM, order, &[]).unwrap();
    victim.wait_ready().unwrap();
    std::thread::sleep(chance.pause(Duration::from_millis(20)));
    match ending {
        Ending::Never => kill(Pid::from_raw(victim.pid() as i32), Signal::SIGTERM).unwrap(),
        Ending::ThreadsEnd => {
            wait_for_threads(&victim);
            victim.go();
        }
        _ => victim.go(),
    }
    let status = victim.wait_end().unwrap();
    let words = victim.words().unwrap();
    assert!(!words.contains("sa-profile"), "{ending:?}: {words}");
    let verdict = autopsy(&victim, Lack::Nothing);
    (verdict, (status.code(), status.signal()))
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
        (Ending::Return, BOTH, Some(0), None),
        (Ending::ThreadsEnd, FLAT, Some(0), None),
        (Ending::Finish, BOTH, Some(0), None),
    ] {
        for pattern in patterns {
            let mut all = Verdict::default();
            for _ in 0..rounds(1, 9) {
                let (verdict, status) = end(ending, *pattern, &mut chance);
                assert_eq!(status, (code, signal), "{ending:?}");
                all += verdict;
            }
            println!("END {ending:?} {pattern:?} seed={}: {all}", chance.seed);
            assert!(all.acknowledged > 0 && all.is_clean(), "{all}");
        }
    }
}
