//! A host that becomes a daemon: it closes all descriptors, including the recorder's, and then opens its own files under the same numbers.

use crate::work::record;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Descriptor numbers under which the daemon opens its file: low ones, and the range in which a recorder would place its own.
const REUSED: [std::ops::Range<i32>; 2] = [3..24, 512..560];
/// Number of rounds of recording and writing.
const ROUNDS: u64 = 40;

/// Runs the daemon. Records `count` spans while writing to `file`, and finally writes its pid and its idle CPU time in ms to `<file>.end`.
pub(crate) fn serve(file: &str, count: u64) {
    // SAFETY: setsid has no preconditions.
    unsafe { libc::setsid() };
    close_everything();
    let mut output = open_everywhere(file);
    for round in 0..ROUNDS {
        let (from, to) = (count * round / ROUNDS, count * (round + 1) / ROUNDS);
        record(&format!("daemon-{round}"), to - from);
        for line in 0..50 {
            writeln!(output, "host data {round} {line}").expect("the host's file is writable");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let end = format!("{} {}\n", std::process::id(), idle_cpu_ms());
    std::fs::write(format!("{file}.end"), end).expect("the host's file is writable");
    std::process::exit(0);
}

fn close_everything() {
    // SAFETY: closing the recorder's descriptors is the purpose. This program uses no descriptor of its own until it opens new ones.
    let status = unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    assert_eq!(status, 0, "close_range succeeds");
}

/// Opens the file under every number that the recorder may still believe to be its own.
fn open_everywhere(path: &str) -> File {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("the host's file opens");
    let numbers = REUSED.into_iter().flatten();
    for number in numbers.filter(|number| *number != file.as_raw_fd()) {
        // SAFETY: all these numbers were closed, so the host may reuse them.
        let status = unsafe { libc::dup2(file.as_raw_fd(), number) };
        assert_eq!(status, number, "dup2 succeeds");
    }
    file
}

/// Returns the CPU time that the process uses while the host does nothing for 1.5 s.
fn idle_cpu_ms() -> u64 {
    let before = cpu_ms();
    std::thread::sleep(Duration::from_millis(1500));
    cpu_ms() - before
}

/// Returns the CPU time used so far. The kernel reports it in ticks of 10 ms, in the 12th and 13th field after the program's name.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the state of this process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    10 * ticks.map(crate::number).sum::<u64>()
}
