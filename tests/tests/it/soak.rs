//! Many lightly loaded processes with many threads over a long time: disk and memory use stay bounded, and only the disk bound causes losses.

use std::path::Path;
use std::time::Duration;

use crate::HOST;
use e2e::chance::rounds;
use e2e::host_support::{
    Host, Live, Merged, disk_space, ring_files, scratch, segments, status_kib,
};
use trace_merge::survey;

const PROCESSES: usize = 64;
const THREADS: u64 = 8;
/// Number of spans per burst of a thread. There are ten bursts a second, so 20,480 spans a second in total.
const BURST: u64 = 4;
const MIB: u64 = 1 << 20;
/// Disk bound of each process. It is reached after a minute and a half.
const BOUND_MIB: u64 = 4;
/// Maximum memory that recording may add to a process: nine rings of 256 KiB with thread stacks, code, and the memory of the recorder's threads.
const MEMORY_KIB: u64 = 9 * (256 + 64) + 4096;

fn start(dir: Option<&Path>, ticks: u64) -> Live {
    let arguments = [THREADS, BURST, ticks].map(|number| number.to_string());
    let host = Host::new(HOST).arguments(&["paced"]).arguments(&arguments);
    let host = host.deadline(Duration::from_secs(ticks / 10 + 300));
    let Some(dir) = dir else {
        return host.start();
    };
    let host = host.recorded_in(dir).variable("SA_PROFILE_RUN", "soak");
    host.variable("SA_PROFILE_MAX_MB", BOUND_MIB.to_string())
        .start()
}

#[test]
fn sixty_four_processes_stay_within_disk_and_memory_and_lose_nothing_else() {
    let seconds = rounds(4, 600) as u64;
    let dir = scratch();
    let plain = start(None, seconds * 10);
    let hosts: Vec<Live> = (0..PROCESSES)
        .map(|_| start(Some(dir.path()), seconds * 10))
        .collect();
    let pids: Vec<u32> = hosts.iter().map(Live::pid).collect();
    let (mut most_disk, mut most_kib, mut plain_kib) = (0, 0, 0);
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        let segments = segments(dir.path());
        let disk = segments.iter().filter_map(|segment| disk_space(segment));
        most_disk = most_disk.max(disk.sum());
        let memory = pids.iter().map(|pid| status_kib(*pid, "VmRSS:"));
        most_kib = memory.fold(most_kib, u64::max);
        plain_kib = plain_kib.max(status_kib(plain.pid(), "VmRSS:"));
    }
    for host in hosts.into_iter().chain([plain]) {
        let _outcome = host.end().quiet();
    }
    let expected = PROCESSES as u64 * THREADS * BURST * seconds * 10;
    let merged = Merged::newest(dir.path());
    let (shown, removed, disk_mib) = (merged.spans(), merged.lost(), most_disk / MIB);
    println!(
        "SOAK {seconds} s, {expected} spans, {shown} shown, {removed} removed, {disk_mib} MiB on disk, {most_kib} KiB in memory, {plain_kib} KiB without"
    );
    assert_eq!(merged.spans() + merged.lost(), expected);
    assert_eq!(merged.damage(), Vec::<String>::new());
    for process in survey::processes(dir.path()).unwrap() {
        let contents = process.contents(&mut survey::SegmentCache::default());
        let lost = contents.unwrap().lost;
        assert!(lost.keys().all(|cause| cause == "disk_bound"), "{lost:?}");
    }
    assert!(most_disk <= PROCESSES as u64 * (BOUND_MIB + 1) * MIB);
    assert!(most_kib <= plain_kib + MEMORY_KIB);
    assert_eq!(ring_files(dir.path()), Vec::<std::path::PathBuf>::new());
}
