//! Process limits: the host's output and exit code never change, and losses are counted.

use crate::{HOST, host};
use e2e::host_support::{
    HostRecording, Merged, Outcome, assert_accounted_or_off, scratch, undisturbed,
};
use tempfile::TempDir;

/// Runs the host under a limit, with and without recording, and compares.
fn assert_unharmed(limit: &str, mode: &str, did: u64) -> (TempDir, Outcome) {
    let dir = scratch();
    let line = format!("limit {limit}, init, {mode}");
    let outcome = undisturbed(HOST, dir.path(), &["--lazy", &line]);
    assert_accounted_or_off(dir.path(), &outcome, did);
    (dir, outcome)
}

#[test]
fn a_limit_never_kills_and_losses_are_counted() {
    for limit in [0, 1, 4096, 64 << 10, 300 << 10, 1 << 20, 2 << 20, 16 << 20] {
        let (dir, _) = assert_unharmed(&format!("fsize {limit}"), "spans work 50000", 50_000);
        if limit >= 1 << 20 {
            // Segments end before they reach the limit.
            HostRecording::in_dir(dir.path()).assert_exactly(&[("work", 50_000)]);
        }
    }
    for limit in (3..=14).chain([24]) {
        assert_unharmed(&format!("nofile {limit}"), "spans work 5000", 5000);
    }
    // Above 64 MiB the C library reserves that much for each thread's heap, so which allocations succeed depends on chance.
    // Below 16 MiB (tried: 12) the host aborts even without the recorder.
    let limits = [16, 20, 24, 32, 64].map(|mebibytes| (mebibytes << 10, 16));
    for (kibibytes, threads) in limits.into_iter().chain([(80_000, 8)]) {
        let limit = format!("as {}", kibibytes << 10);
        assert_unharmed(&limit, &format!("threads {threads} 1000"), threads * 1000);
    }
    for limit in ["nofile 64", "nofile 1024"] {
        let (dir, outcome) = assert_unharmed(limit, "threads 20 500", 10_000);
        let _outcome = outcome.quiet();
        let found = HostRecording::in_dir(dir.path());
        assert_eq!((found.recorded(), found.lost), (10_000, 0));
    }
}

#[test]
fn issue_19_args_without_memory_are_counted_even_after_a_kill() {
    let dir = scratch();
    let host = host(dir.path(), &["little-memory-then-killed"]);
    let _killed = host.run().was_killed();
    let found = HostRecording::in_dir(dir.path());
    assert_eq!(found.counts()["work"], 10);
    assert!(found.lost > 0, "args of 16 MB fit into memory");
    assert_eq!(Merged::newest(dir.path()).lost(), found.lost);
}
