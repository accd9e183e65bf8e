//! A file system that hangs may cost the host seconds, never its life.

use e2e::host_support::{Host, scratch};
use std::time::{Duration, Instant};

const STALLED: &str = env!("CARGO_BIN_EXE_stalled");

/// Lets the host do its work; gives how long that took.
fn take_time(how: &str) -> Duration {
    let dir = scratch();
    let start = Instant::now();
    let host = Host::new(STALLED).arguments(&[how]);
    let outcome = host
        .recorded_in(dir.path())
        .variable("SA_PROFILE_THREADS", "1") // without the helper the only thread writes, and hangs (docs/threads.md)
        .deadline(Duration::from_secs(30))
        .run();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    start.elapsed()
}

#[test]
fn a_write_that_hangs_does_not_hang_the_host() {
    let took = take_time("hung");
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[test]
fn a_signal_handler_may_exit_within_a_write() {
    let took = take_time("exit");
    assert!(took < Duration::from_secs(8), "{took:?}");
}
