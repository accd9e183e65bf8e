//! Memory limits as in containers: how much of the limit the rings use, and recording with little memory.

use crate::HOST;
use e2e::host_support::{Host, HostRecording, MemoryGroup, ring_files, scratch, segment_bytes};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Deadline for anything in these tests. Only a hang takes this long.
const DEADLINE: Duration = Duration::from_secs(60);
/// Number of recording threads, more than can get a large ring.
const THREADS: u64 = 40;

fn host_in(group: &MemoryGroup, dir: &Path, arguments: &[&str]) -> Host {
    Host::below(&["sh", "-c", &group.enter()], HOST)
        .arguments(arguments)
        .recorded_in(dir)
}

#[test]
fn privileged_a_small_memory_limit_kills_nobody_and_everything_is_counted() {
    let Some(group) = MemoryGroup::limited(24 << 20) else {
        return;
    };
    let dir = scratch();
    // The spans amount to twice the limit, all written through the page cache.
    let arguments = ["threads", &THREADS.to_string(), "12000"];
    let _outcome = host_in(&group, dir.path(), &arguments).run().quiet();
    let written = segment_bytes(dir.path());
    let found = HostRecording::accounted(dir.path(), THREADS * 12_000);
    println!("MEMORY written_bytes={written} lost={}", found.lost);
    let is_filled = found.lost > 0 || written > 48 << 20;
    assert!(is_filled, "{written} bytes do not fill the group");
}

#[test]
fn privileged_the_rings_use_as_much_of_the_limit_as_documented() {
    let Some(group) = MemoryGroup::limited(1 << 30) else {
        return;
    };
    let dir = scratch();
    let live = host_in(&group, dir.path(), &["steady", &THREADS.to_string()]).start();
    let start = Instant::now();
    // docs/containers.md: 276 KiB for each of 32 threads, 84 KiB for others, 344 KiB for the process.
    let documented = (32 * 276 + (THREADS - 32) * 84 + 344) << 10;
    // By then every thread has filled its ring once. The files' preallocated space counts as well.
    while segment_bytes(dir.path()) < 64 << 20 || group.mapped_bytes() <= documented / 2 {
        assert!(start.elapsed() < DEADLINE, "{THREADS} threads record");
        thread::sleep(Duration::from_millis(20));
    }
    let mapped = group.mapped_bytes();
    let ring = fs::metadata(&ring_files(dir.path())[0]).expect("the ring");
    let ring = ring.len();
    let _outcome = live.end();
    println!("MEMORY threads={THREADS} mapped_bytes={mapped} ring_bytes={ring}");
    assert!(ring <= documented, "documented {documented}");
    assert!(mapped <= documented * 5 / 4, "documented {documented}");
}
