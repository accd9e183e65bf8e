//! Every C library call that the recorder makes fails: once, from some call on, or at random. The host's output and exit code do not change. Each event is recorded or counted, or one
//! line reports that nothing is recorded.
//!
//! A preloaded library (`tests/faults`) makes the calls fail. It does not see system calls that bypass the C library.

use crate::host;
use e2e::chance::{Chance, rounds};
use e2e::host_support::{
    Host, HostRecording, Outcome, assert_accounted_or_off, full, library, scratch,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Initial values that a test shares with the library: number of calls, number of failed calls, number of inactive plans.
const NONE: [u8; 24] = [0; 24];
/// A failure mode that completes half of the request.
const SHORT: &str = "short";

/// Returns the calls, each with its failure modes.
fn calls() -> Vec<(&'static str, Vec<String>)> {
    let texts = |errors: &[i32]| errors.iter().map(i32::to_string).collect::<Vec<_>>();
    let cut = |errors: &[i32]| [texts(errors), vec![SHORT.to_owned()]].concat();
    use libc::*;
    vec![
        ("writev", cut(&[ENOSPC, EINTR, EIO, EAGAIN, EDQUOT])),
        ("write", cut(&[ENOSPC, EINTR, EIO, EAGAIN])),
        ("read", cut(&[EIO, EINTR])),
        ("open", texts(&[ENOSPC, EIO, EMFILE, EACCES, EINTR])),
        ("mkdir", texts(&[ENOSPC, EIO, EACCES])),
        ("unlinkat", texts(&[EIO, EACCES])),
        ("stat", texts(&[EIO, ENOMEM])),
        ("fstat", texts(&[EIO, EBADF])),
        ("ftruncate", texts(&[EIO, ENOSPC, EINTR])),
        ("fallocate", texts(&[ENOSPC, EOPNOTSUPP, EINTR, EIO])),
        ("fstatfs", texts(&[EIO])),
        ("flock", texts(&[EWOULDBLOCK, EINTR, ENOLCK])),
        ("fchmod", texts(&[EPERM, EIO])),
        ("fcntl", texts(&[EMFILE, EINVAL])),
        ("close", texts(&[EIO, EINTR])),
        ("mmap", texts(&[ENOMEM, EAGAIN, EACCES])),
        ("madvise", texts(&[EINVAL, ENOMEM])),
        ("memfd_create", texts(&[EMFILE, ENOMEM])),
        ("getrlimit", texts(&[EPERM])),
        ("poll", texts(&[EINTR])),
        ("prctl", texts(&[EINVAL])),
        ("pthread_create", texts(&[EAGAIN])),
        ("pthread_key_create", texts(&[EAGAIN])),
        ("getrandom", texts(&[EAGAIN, ENOSYS])),
        ("clock_gettime", texts(&[EINVAL, EPERM])),
        ("readlink", texts(&[EACCES])),
        ("syscall", texts(&[EPERM, EIO, EINTR])), // renameat2 and membarrier
    ]
}

/// Makes a host's calls fail as planned. The library counts them in the file `counts`.
pub(crate) fn with_faults(host: Host, plans: &str, counts: &Path) -> Host {
    fs::write(counts, NONE).expect("own directory");
    host.variable("LD_PRELOAD", library("libfaults.so"))
        .variable("SA_TEST_FAULTS", plans)
        .variable("SA_TEST_FAULTS_TOLD", counts)
}

/// Runs a host whose calls fail as planned. Returns its outcome, the number of calls and the number of failures.
fn run(dir: &Path, plans: &str, mode: &str) -> (Outcome, u64, u64) {
    let counts = dir.join("counts");
    let host = host(&dir.join("run"), &["--lazy", "script"]);
    let mut host = with_faults(host, plans, &counts).start();
    host.send(&format!("init, {mode}"));
    let outcome = host.end();
    let numbers = fs::read(&counts).expect("own file");
    let number = |at: usize| u64::from_ne_bytes(*numbers[at..].first_chunk().expect("bytes"));
    (outcome, number(0), number(8))
}

/// Runs such a host. Asserts that it behaves normally and that nothing is missing without being counted. Returns the number of failed calls.
fn assert_unharmed(plans: &str, spans: u64) -> u64 {
    assert_command_unharmed(plans, &format!("spans work {spans}"), spans)
}

fn assert_command_unharmed(plans: &str, mode: &str, spans: u64) -> u64 {
    let dir = scratch();
    let (outcome, _, failed) = run(dir.path(), plans, mode);
    println!("{plans}: {failed} failed; {}", outcome.stderr.trim_end());
    let outcome = outcome.unharmed();
    assert_eq!(outcome.stdout, format!("{mode}\n"), "{outcome:?}");
    assert_accounted_or_off(&dir.path().join("run"), &outcome, spans);
    failed
}

/// Returns the number of times that the recorder makes a call.
fn call_count(call: &str) -> u64 {
    let dir = scratch();
    let plan = format!("{call}=0@1");
    run(dir.path(), &plan, "spans work 4000").1
}

/// Fails the first call, the last, and one in between, in one way each. With `SA_PROFILE_FULL`, fails more calls in all ways.
#[test]
fn each_call_fails_once() {
    let mut failed = 0;
    for (call, ways) in calls() {
        let made = call_count(call);
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
fn each_call_fails_from_some_call_on() {
    let mut failed = 0;
    for (call, ways) in calls() {
        for way in &ways {
            for from in if full() { vec![1, 2, 3, 5] } else { vec![1] } {
                failed += assert_unharmed(&format!("{call}={way}@{from}+"), 4000);
            }
        }
    }
    println!("FAULTS from some call on: {failed} calls failed");
    assert!(failed >= 100, "{failed} calls failed");
}

/// Some readings of the clock are 0, including those of the recorder's own thread, which exists because the host has two threads.
#[test]
fn a_clock_that_sometimes_fails_disturbs_nothing() {
    let failed = (0..6).map(|seed| {
        let plan = format!("clock_gettime=22%4:{seed}");
        assert_command_unharmed(&plan, "threads 2 20000", 40_000)
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
            // If `poll` cannot check whether stderr accepts data, no line is written.
            if call != "poll" && chance.below(2) == 0 {
                let (way, seed) = (&ways[chance.below(ways.len())], chance.below(1 << 20));
                let many = [3, 10, 40][chance.below(3)];
                plans.push(format!("{call}={way}%{many}:{seed}"));
            }
        }
        // A partial block that can neither be completed nor removed is damage, in addition to the report of its loss.
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

/// If the ring's file has no space, events wait in memory. They must be written at the end of the process, whatever the clock returns.
#[test]
fn a_clock_that_fails_at_the_end_loses_nothing() {
    let failed = (0..rounds(6, 40)).map(|seed| {
        let plans = format!("fallocate=28%3:159194,clock_gettime=1%3:{seed}");
        assert_unharmed(&plans, 12_000)
    });
    println!("FAULTS at the end: {} calls failed", failed.sum::<u64>());
}

/// The ring is in memory here, as on a remote file system, so events that the last write does not accept have no other copy.
#[test]
fn issue_19_a_failed_last_write_is_repeated() {
    for call in ["writev", "fstat"] {
        let made = call_count(call);
        for number in made.saturating_sub(6)..=made {
            assert_unharmed(&format!("fstatfs=5@1+,{call}=5@{number}"), 4000);
        }
    }
}

#[test]
fn issue_19_losses_that_no_file_can_report_are_printed() {
    const SPANS: u64 = 4000;
    let from = call_count("writev").saturating_sub(3);
    let dir = scratch();
    let plans = format!("fstatfs=5@1+,writev=28@{from}+");
    let (outcome, _, failed) = run(dir.path(), &plans, "spans work 4000");
    assert!(failed > 1, "{failed} calls failed");
    let found = HostRecording::in_dir(&dir.path().join("run"));
    let lost = SPANS - found.recorded();
    let message = format!("sa-profile: lost {lost} events of process ");
    assert!(outcome.stderr.starts_with(&message), "{lost}: {outcome:?}");
    assert!(outcome.stderr.ends_with("(disk_full)\n"), "{outcome:?}");
    assert_eq!(found.lost, 0);
}
