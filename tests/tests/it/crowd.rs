//! Many threads and processes: every span is recorded, or counted if the machine is too busy. Ended threads and processes leave no ring behind.

use crate::{HOST, host};
use e2e::chance::rounds;
use e2e::host_support::{HostRecording, Merged, ring_files, scratch, undisturbed};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum time that a thread of the host waits for other writers.
const PATIENCE: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(1200);

#[test]
fn a_thousand_threads_at_once_are_all_recorded_or_counted() {
    let dir = scratch();
    let began = Instant::now();
    let _outcome = undisturbed(HOST, dir.path(), &["threads", "1000", "50"]);
    let took = began.elapsed();
    let found = HostRecording::accounted(dir.path(), 50_000);
    // A thread that cannot write waits for a second and then counts the event as lost. This may happen if the machine is busy for longer.
    if took < PATIENCE {
        assert_eq!(found.lost, 0, "there was room for every thread");
        assert_eq!(found.counts().len(), 1000);
        assert_eq!(Merged::newest(dir.path()).tracks(), 1000);
    }
}

#[test]
fn very_many_short_threads_are_all_recorded() {
    let threads = rounds(10_000, 1_000_000);
    let dir = scratch();
    let host = host(dir.path(), &["short-threads", &threads.to_string()]);
    let _outcome = host.deadline(DEADLINE).run().quiet();
    HostRecording::in_dir(dir.path()).assert_exactly(&[("short", threads as u64)]);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
}
