//! Limits of the process: whatever the kernel refuses, the host's output and exit code stay and losses are counted.

use crate::{HOST, host};
use e2e::host_support::{Found, Merged, assert_accounted_or_off, scratch, undisturbed};
use tempfile::TempDir;

/// Runs the host with and without a recorder below a limit.
fn assert_unharmed(limit: &str, mode: &[&str], did: u64) -> TempDir {
    let dir = scratch();
    let arguments = [&["--limit", limit], mode].concat();
    let outcome = undisturbed(HOST, dir.path(), &arguments);
    assert_accounted_or_off(dir.path(), &outcome, did);
    dir
}

#[test]
fn a_limit_never_kills_and_losses_are_counted() {
    for limit in [0, 1, 4096, 64 << 10, 300 << 10, 1 << 20, 2 << 20, 16 << 20] {
        let work = ["spans", "work", "50000"];
        let dir = assert_unharmed(&format!("fsize={limit}"), &work, 50_000);
        if limit >= 1 << 20 {
            // Segments end before the limit.
            Found::in_dir(dir.path()).assert_exactly(&[("work", 50_000)]);
        }
    }
    for limit in (3..=14).chain([24]) {
        assert_unharmed(&format!("nofile={limit}"), &["spans", "work", "5000"], 5000);
    }
    // Above 64 MiB the C library takes that much for each thread's heap, and what is left for anybody is luck.
    // With 12 MiB the host aborts without us as well.
    let limits = [16, 20, 24, 32, 64].map(|mebibytes| (mebibytes << 10, 16));
    for (kibibytes, threads) in limits.into_iter().chain([(80_000, 8)]) {
        let (limit, count) = (format!("as={}", kibibytes << 10), threads.to_string());
        assert_unharmed(&limit, &["threads", &count, "1000"], threads * 1000);
    }
}

#[test]
fn a_common_descriptor_limit_loses_nothing() {
    for limit in [64, 1024] {
        let dir = scratch();
        let limit = format!("nofile={limit}");
        let arguments = ["--limit", &limit, "threads", "20", "500"];
        let _outcome = undisturbed(HOST, dir.path(), &arguments).quiet();
        let found = Found::in_dir(dir.path());
        assert_eq!((found.recorded(), found.lost), (10_000, 0));
    }
}

#[test]
fn issue_19_what_finds_no_memory_is_counted_beyond_a_kill() {
    let dir = scratch();
    let host = host(dir.path(), &["little-memory-then-killed"]);
    let _killed = host.run().was_killed();
    let found = Found::in_dir(dir.path());
    assert_eq!(found.counts()["work"], 10);
    assert!(found.lost > 0, "args of 16 MB found memory");
    assert_eq!(Merged::newest(dir.path()).lost(), found.lost);
}
