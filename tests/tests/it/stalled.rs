//! A file system that hangs may cost the host seconds, never its life: neither with the recorder's own thread nor without.

use e2e::host_support::{Found, Host, Merged, Outcome, scratch};
use std::path::Path;
use std::time::{Duration, Instant};

const STALLED: &str = env!("CARGO_BIN_EXE_stalled");
/// Longer than a second for each of what the host does, shorter than for ever.
const BOUND: Duration = Duration::from_secs(8);

/// Lets the host do its work, with the recorder's threads as asked.
fn run(how: &str, threads: &str, dir: &Path) -> Outcome {
    let start = Instant::now();
    let host = Host::new(STALLED).arguments(&[how]).recorded_in(dir);
    let host = host.variable("SA_PROFILE_THREADS", threads);
    let outcome = host.deadline(Duration::from_secs(30)).run();
    assert_eq!(
        outcome.status.code(),
        Some(7),
        "{how}, {threads}: {outcome:?}"
    );
    let took = start.elapsed();
    assert!(took < BOUND, "{how}, {threads}: {took:?}");
    outcome
}

#[test]
fn a_write_that_hangs_does_not_hang_the_host() {
    for threads in ["", "1"] {
        run("hung", threads, scratch().path());
    }
}

/// The ring fills up while the write at its three quarters never ends. Beside a helper that the host is faster than, it writes itself (docs/threads.md).
#[test]
fn a_host_that_records_fast_goes_on_beside_a_write_that_hangs() {
    run("fast", "", scratch().path());
}

#[test]
fn a_look_at_the_control_file_that_hangs_does_not_hang_the_host() {
    for threads in ["", "1"] {
        run("looks, fast", threads, scratch().path());
    }
}

#[test]
fn after_a_hang_the_host_has_one_thread_and_nothing_is_lost() {
    let dir = scratch();
    run("recovers", "", dir.path());
    Found::in_dir(dir.path()).assert_accounted(30);
}

/// It is in the file, or one that is lost: not both, and not neither.
#[test]
fn a_span_larger_than_a_ring_is_written_late_or_counted() {
    for (how, threads, lost) in [("late", "", 0), ("never", "", 1), ("never", "1", 1)] {
        let dir = scratch();
        run(how, threads, dir.path());
        let found = Found::in_dir(dir.path());
        found.assert_accounted(21);
        assert_eq!(found.lost, lost, "{how}, {threads}");
        let merged = Merged::newest(dir.path());
        let events = merged.events().iter();
        let causes = events.filter_map(|event| event["args"]["cause"].as_str());
        let expected = vec!["busy"; lost as usize];
        assert_eq!(causes.collect::<Vec<_>>(), expected, "{how}, {threads}");
    }
}

/// Also where the calling thread itself writes.
#[test]
fn a_signal_handler_may_exit_within_a_write() {
    for threads in ["", "0", "1"] {
        run("exit", threads, scratch().path());
    }
}

/// Events in memory end with the process: the ring counts them, if it can be told, or a sentence says so. A write before the hang may have had them.
#[test]
fn events_that_end_with_the_process_are_said() {
    for (how, threads) in [
        ("exit, in memory", ""),
        ("exit, in memory", "1"),
        ("exit in a write, in memory", ""),
    ] {
        let dir = scratch();
        let outcome = run(how, threads, dir.path());
        if !outcome.stderr.contains("of 1 thread(s) of process") {
            Found::in_dir(dir.path()).assert_accounted(20); // ten of either thread
        }
    }
}
