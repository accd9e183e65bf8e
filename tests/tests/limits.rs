//! Limits of the process: whatever the kernel refuses, the host's output and exit code stay and losses are counted.

use e2e::host_support::{
    Found, Host, Merged, assert_accounted_or_off, is_root, public_copy, scratch, undisturbed,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const HOST: &str = env!("CARGO_BIN_EXE_host");
/// A user without any rights of its own.
const NOBODY: u32 = 65534;

#[test]
fn a_file_size_limit_never_kills_and_losses_are_counted() {
    for limit in [
        0,
        1,
        100,
        4096,
        64 << 10,
        256 << 10,
        300 << 10,
        1 << 20,
        2 << 20,
        16 << 20,
    ] {
        let dir = scratch();
        let limit = format!("fsize={limit}");
        let outcome = undisturbed(
            HOST,
            dir.path(),
            &["--limit", &limit, "spans", "work", "50000"],
        );
        assert_accounted_or_off(dir.path(), &outcome, 50_000);
    }
}

#[test]
fn few_descriptors_leave_the_host_alone() {
    for limit in 3..=24 {
        let dir = scratch();
        let limit = format!("nofile={limit}");
        let outcome = undisturbed(
            HOST,
            dir.path(),
            &["--limit", &limit, "spans", "work", "5000"],
        );
        assert_accounted_or_off(dir.path(), &outcome, 5000);
    }
}

#[test]
fn a_common_descriptor_limit_loses_nothing() {
    for limit in [64, 256, 512, 1024] {
        let dir = scratch();
        let limit = format!("nofile={limit}");
        let _outcome = undisturbed(
            HOST,
            dir.path(),
            &["--limit", &limit, "threads", "20", "500"],
        )
        .quiet();
        let found = Found::in_dir(dir.path());
        assert_eq!((found.recorded(), found.lost), (10_000, 0));
    }
}

#[test]
fn little_address_space_leaves_the_host_alone() {
    // Above 64 MiB the C library takes that much for each thread's heap, and what is left for anybody is luck.
    // With 12 MiB the host aborts without us as well.
    let limits = [16, 20, 24, 32, 48, 64].map(|mebibytes| (mebibytes << 10, 16));
    for (kibibytes, threads) in limits.into_iter().chain([(80_000, 8)]) {
        let dir = scratch();
        let (limit, count) = (format!("as={}", kibibytes << 10), threads.to_string());
        let arguments = ["--limit", &limit, "threads", &count, "1000"];
        let outcome = undisturbed(HOST, dir.path(), &arguments);
        assert_accounted_or_off(dir.path(), &outcome, threads * 1000);
    }
}

#[test]
fn issue_19_what_finds_no_memory_is_counted_beyond_a_kill() {
    let dir = scratch();
    let arguments = ["little-memory-then-killed"];
    let host = Host::new(HOST).arguments(&arguments);
    let _killed = host.recorded_in(dir.path()).run().was_killed();
    let found = Found::in_dir(dir.path());
    assert_eq!(found.counts()["work"], 10);
    assert!(found.lost > 0, "args of 16 MB found memory");
    let merged = Merged::newest(dir.path());
    assert_eq!(merged.lost(), found.lost);
}

#[test]
fn no_new_threads_allowed_still_records() {
    if !is_root("no_new_threads_allowed_still_records") {
        return;
    }
    let (place, program) = public_copy(HOST);
    let dir = place.path().join("run");
    fs::create_dir(&dir).expect("a new directory");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("own directory");
    // Root is above this limit; the helper thread cannot start for an ordinary user.
    let arguments = ["--limit", "nproc=1", "spans", "work", "20000"];
    let recorded = Host::new(&program)
        .arguments(&arguments)
        .user(NOBODY)
        .recorded_in(&dir)
        .run();
    assert_eq!(recorded.status.code(), Some(7), "{recorded:?}");
    assert!(recorded.stderr.lines().count() <= 1, "{recorded:?}");
    Found::in_dir(&dir).assert_accounted(20_000);
}
