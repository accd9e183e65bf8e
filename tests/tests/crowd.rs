//! Very many threads and processes: every span is recorded, and no ring is left of those that ended.

use e2e::host_support::{
    Found, Host, Live, Merged, full, previous_runs, ring_files, scratch, undisturbed,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const HOST: &str = env!("CARGO_BIN_EXE_host");

/// How long a thread of the host waits for others that write.
const PATIENCE: Duration = Duration::from_secs(1);

#[test]
fn a_thousand_threads_at_once_are_all_recorded_or_counted() {
    let dir = scratch();
    let began = Instant::now();
    let outcome = undisturbed(HOST, dir.path(), &["threads", "1000", "50"]);
    let took = began.elapsed();
    assert!(outcome.stderr.lines().count() <= 1);
    let found = Found::in_dir(dir.path());
    found.assert_accounted(50_000);
    let merged = Merged::newest(dir.path());
    found.assert_merged(&merged);
    // A thread that cannot write waits for a second and then counts: on a machine that is busy for longer, some may have to.
    if took < PATIENCE {
        assert_eq!(found.lost, 0, "there was room for every thread");
        assert_eq!(found.counts().len(), 1000);
        assert_eq!(merged.threads(), 1000);
    }
}

#[test]
fn very_many_short_threads_are_all_recorded() {
    let threads: u64 = if full() { 1_000_000 } else { 50_000 };
    let dir = scratch();
    let outcome = Host::new(HOST)
        .arguments(&["short-threads", &threads.to_string()])
        .recorded_in(dir.path())
        .deadline(Duration::from_secs(1200))
        .run()
        .quiet();
    assert_eq!(outcome.stdout, format!("short threads {threads}\n"));
    Found::in_dir(dir.path()).assert_exactly(&[("short", threads)]);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn very_many_one_span_processes_leave_every_span_and_no_ring() {
    let processes: u64 = if full() { 10_000 } else { 500 };
    let dir = scratch();
    let _outcome = Host::new(HOST)
        .arguments(&["processes", "spans", &processes.to_string()])
        .recorded_in(dir.path())
        .deadline(Duration::from_secs(1200))
        .run()
        .quiet();
    let found = Found::in_dir(dir.path());
    found.assert_accounted(processes + 1);
    assert_eq!((found.recorded(), found.lost), (processes + 1, 0));
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
    let merged = Merged::newest(dir.path());
    assert_eq!(
        (merged.spans(), merged.processes()),
        (processes + 1, processes + 1)
    );
}

/// A run whose main and 50 children were all killed: 51 rings.
fn killed_family() -> TempDir {
    let dir = scratch();
    let mut main: Live = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    main.ask("spans main 10");
    let children = Host::new(HOST)
        .arguments(&["processes", "killed", "50"])
        .recorded_in(dir.path())
        .run();
    assert_eq!(children.status.code(), Some(7));
    main.kill();
    assert!(
        ring_files(dir.path()).len() > 50,
        "killed processes leave their rings"
    );
    dir
}

#[test]
fn a_merge_leaves_no_ring_of_an_ended_process_behind() {
    let dir = killed_family();
    let merged = Merged::newest(dir.path());
    assert_eq!(merged.spans(), 61);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
    let again = Merged::newest(dir.path());
    assert_eq!(
        again.counts(),
        merged.counts(),
        "the second merge reads the same without the rings"
    );
}

#[test]
fn the_cleaning_leaves_no_ring_of_an_ended_process_behind() {
    let dir = killed_family();
    let _next = Host::new(HOST)
        .arguments(&["spans", "next", "1"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    assert_eq!(
        ring_files(&dir.path().join("fragments")),
        Vec::<PathBuf>::new()
    );
    assert_eq!(previous_runs(dir.path()).len(), 1);
    Found::in_dir(dir.path()).assert_exactly(&[("next", 1)]);
    assert_eq!(Found::in_previous(dir.path()).recorded(), 61);
    assert_eq!(Merged::previous(dir.path()).spans(), 61);
    assert_eq!(ring_files(dir.path()), Vec::<PathBuf>::new());
}
