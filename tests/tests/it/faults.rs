//! Each call that the recorder makes of the C library fails: once, from some time on, or at random. The host's output and exit code stay, and each event is recorded or counted, or one
//! line says that nothing is recorded.
//!
//! The calls are made to fail by a preloaded library (`tests/faults`), which does not see what the recorder asks of the kernel by itself.

use crate::host;
use e2e::chance::{Chance, rounds};
use e2e::host_support::{Found, Host, Outcome, assert_accounted_or_off, full, library, scratch};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The numbers that a test and the library share: calls, failed calls, and plans that do not hold.
const NONE: [u8; 24] = [0; 24];
/// Half of what is asked for is done.
const SHORT: &str = "short";

/// The calls, each with the ways in which it fails.
fn calls() -> Vec<(&'static str, Vec<String>)> {
    let named = |errors: &[i32]| errors.iter().map(i32::to_string).collect::<Vec<_>>();
    let cut = |errors: &[i32]| [named(errors), vec![SHORT.to_owned()]].concat();
    use libc::*;
    vec![
        ("writev", cut(&[ENOSPC, EINTR, EIO, EAGAIN, EDQUOT])),
        ("write", cut(&[ENOSPC, EINTR, EIO, EAGAIN])),
        ("read", cut(&[EIO, EINTR])),
        ("open", named(&[ENOSPC, EIO, EMFILE, EACCES, EINTR])),
        ("mkdir", named(&[ENOSPC, EIO, EACCES])),
        ("unlinkat", named(&[EIO, EACCES])),
        ("stat", named(&[EIO, ENOMEM])),
        ("fstat", named(&[EIO, EBADF])),
        ("ftruncate", named(&[EIO, ENOSPC, EINTR])),
        ("fallocate", named(&[ENOSPC, EOPNOTSUPP, EINTR, EIO])),
        ("fstatfs", named(&[EIO])),
        ("flock", named(&[EWOULDBLOCK, EINTR, ENOLCK])),
        ("fchmod", named(&[EPERM, EIO])),
        ("fcntl", named(&[EMFILE, EINVAL])),
        ("close", named(&[EIO, EINTR])),
        ("mmap", named(&[ENOMEM, EAGAIN, EACCES])),
        ("madvise", named(&[EINVAL, ENOMEM])),
        ("memfd_create", named(&[EMFILE, ENOMEM])),
        ("getrlimit", named(&[EPERM])),
        ("poll", named(&[EINTR])),
        ("prctl", named(&[EINVAL])),
        ("pthread_create", named(&[EAGAIN])),
        ("pthread_key_create", named(&[EAGAIN])),
        ("getrandom", named(&[EAGAIN, ENOSYS])),
        ("clock_gettime", named(&[EINVAL, EPERM])),
        ("readlink", named(&[EACCES])),
        ("syscall", named(&[EPERM, EIO, EINTR])), // renameat2 and membarrier
    ]
}

/// Makes calls of a host fail as planned. The library counts them in the file `told`.
pub(crate) fn with_faults(host: Host, plans: &str, told: &Path) -> Host {
    fs::write(told, NONE).expect("own directory");
    host.variable("LD_PRELOAD", library("libfaults.so"))
        .variable("SA_TEST_FAULTS", plans)
        .variable("SA_TEST_FAULTS_TOLD", told)
}

/// Runs a host whose calls fail as planned; how often they were made, and how often they failed.
fn run(dir: &Path, plans: &str, mode: &str) -> (Outcome, u64, u64) {
    let told = dir.join("told");
    let host = host(&dir.join("run"), &["--lazy", "script"]);
    let mut host = with_faults(host, plans, &told).start();
    host.tell(&format!("init, {mode}"));
    let outcome = host.end();
    let numbers = fs::read(&told).expect("own file");
    let number = |at: usize| u64::from_ne_bytes(*numbers[at..].first_chunk().expect("bytes"));
    (outcome, number(0), number(8))
}

/// Runs it, and asserts that nobody noticed and nothing is missing without a word; how many calls failed.
fn assert_unharmed(plans: &str, spans: u64) -> u64 {
    assert_unharmed_by(plans, &format!("spans work {spans}"), spans)
}

fn assert_unharmed_by(plans: &str, mode: &str, spans: u64) -> u64 {
    let dir = scratch();
    let (outcome, _, failed) = run(dir.path(), plans, mode);
    println!("{plans}: {failed} failed; {}", outcome.stderr.trim_end());
    let outcome = outcome.unharmed();
    assert_eq!(outcome.stdout, format!("{mode}\n"), "{outcome:?}");
    assert_accounted_or_off(&dir.path().join("run"), &outcome, spans);
    failed
}

/// How often each of the calls is made.
fn made(call: &str) -> u64 {
    let dir = scratch();
    let plan = format!("{call}=0@1");
    run(dir.path(), &plan, "spans work 4000").1
}

/// The first call, the last, and one between; all with `SA_PROFILE_FULL`, and in all ways.
#[test]
fn each_call_fails_once() {
    let mut failed = 0;
    for (call, ways) in calls() {
        let made = made(call);
        let chosen: BTreeSet<u64> = match full() {
            true => (1..=made.min(60)).collect(),
            false => [1, made / 2, made].into(),
        };
        let chosen = chosen
            .into_iter()
            .filter(|number| (1..=made).contains(number));
        for (at, number) in chosen.enumerate() {
            let ways = if full() {
                &ways[..]
            } else {
                &ways[at % ways.len()..][..1]
            };
            for way in ways {
                failed += assert_unharmed(&format!("{call}={way}@{number}"), 4000);
            }
        }
    }
    println!("FAULTS once: {failed} calls failed");
    assert!(failed >= 30, "{failed} calls failed");
}

#[test]
fn each_call_fails_from_some_time_on() {
    let mut failed = 0;
    for (call, ways) in calls() {
        for way in &ways {
            for from in if full() { vec![1, 2, 3, 5] } else { vec![1] } {
                failed += assert_unharmed(&format!("{call}={way}@{from}+"), 4000);
            }
        }
    }
    println!("FAULTS from some time on: {failed} calls failed");
    assert!(failed >= 100, "{failed} calls failed");
}

/// Time seems to be 0 now and then, also for the recorder's own thread, which comes with the second of the host's.
#[test]
fn a_clock_that_is_refused_now_and_then_disturbs_nobody() {
    let failed = (0..6).map(|seed| {
        let plan = format!("clock_gettime=22%4:{seed}");
        assert_unharmed_by(&plan, "threads 2 20000", 40_000)
    });
    println!("FAULTS of the clock: {} calls failed", failed.sum::<u64>());
}

#[test]
fn calls_fail_at_random() {
    let mut chance = Chance::new();
    let mut failed = 0;
    for _ in 0..rounds(16, 300) {
        let mut plans = Vec::new();
        for (call, ways) in calls() {
            // Where stderr cannot be asked whether it has room, nothing is said there.
            if call != "poll" && chance.below(2) == 0 {
                let (way, seed) = (&ways[chance.below(ways.len())], chance.below(1 << 20));
                let many = [3, 10, 40][chance.below(3)];
                plans.push(format!("{call}={way}%{many}:{seed}"));
            }
        }
        // Part of a block that can neither be finished nor taken back is damage, and is there beside the word that the block is lost.
        if plans.iter().any(|plan| plan.starts_with("writev=short")) {
            plans.retain(|plan| !plan.starts_with("ftruncate"));
        }
        failed += assert_unharmed(&plans.join(","), 12_000);
    }
    println!(
        "FAULTS at random: {failed} calls failed, seed {}",
        chance.seed
    );
    assert!(failed >= 16, "{failed} calls failed");
}

/// Where the ring's file has no room, events wait in memory. The end of the process has to write them, whatever the clock says then.
#[test]
fn a_clock_that_is_refused_at_the_end_loses_nothing() {
    let failed = (0..rounds(6, 40)).map(|seed| {
        let plans = format!("fallocate=28%3:159194,clock_gettime=1%3:{seed}");
        assert_unharmed(&plans, 12_000)
    });
    println!("FAULTS at the end: {} calls failed", failed.sum::<u64>());
}

/// The ring lies in memory here, as on a remote file system: what the last write does not take has no other place.
#[test]
fn issue_19_a_last_write_that_fails_is_made_again() {
    for call in ["writev", "fstat"] {
        let made = made(call);
        for number in made.saturating_sub(6)..=made {
            assert_unharmed(&format!("fstatfs=5@1+,{call}=5@{number}"), 4000);
        }
    }
}

#[test]
fn issue_19_what_no_file_can_tell_is_said() {
    const SPANS: u64 = 4000;
    let from = made("writev").saturating_sub(3);
    let dir = scratch();
    let plans = format!("fstatfs=5@1+,writev=28@{from}+");
    let (outcome, _, failed) = run(dir.path(), &plans, "spans work 4000");
    assert!(failed > 1, "{failed} calls failed");
    let found = Found::in_dir(&dir.path().join("run"));
    let lost = SPANS - found.recorded();
    let said = format!("sa-profile: {lost} events of process ");
    assert!(outcome.stderr.starts_with(&said), "{lost}: {outcome:?}");
    assert!(outcome.stderr.ends_with("(disk_full)\n"), "{outcome:?}");
    assert_eq!(found.lost, 0);
}
