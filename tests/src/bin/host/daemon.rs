//! A host that becomes a daemon: it closes every descriptor, the recorder's too, and opens files of its own under the same numbers.

use crate::forks::{end_now, fork, reap};
use crate::work::record;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Numbers under which the daemon's own file is opened again: low ones, and those where a recorder would hide its own.
const TAKEN: [std::ops::Range<i32>; 2] = [3..24, 512..560];
/// Rounds of recording and writing.
const ROUNDS: u64 = 40;

/// Becomes a daemon, then records `count` spans while it writes `file`.
pub(crate) fn run(file: &str, count: u64) {
    record("before", count);
    let child = fork();
    if child != 0 {
        println!("daemon {count} left: {}", reap(child));
        return;
    }
    // SAFETY: setsid has no preconditions.
    unsafe { libc::setsid() };
    if fork() != 0 {
        end_now();
    }
    record("between", count);
    serve(file, count);
}

/// The daemon's life; its idle CPU time in ms goes into `<file>.cpu` and, as the last thing, its pid into `<file>.pid`.
fn serve(file: &str, count: u64) {
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
    for (name, number) in [
        ("cpu", idle_cpu_ms().to_string()),
        ("pid", std::process::id().to_string()),
    ] {
        std::fs::write(format!("{file}.{name}"), number).expect("the host's file is writable");
    }
    std::process::exit(0);
}

fn close_everything() {
    // SAFETY: that descriptors close under the recorder is the point; this program uses none of its own until it opens new ones.
    let status = unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    assert_eq!(status, 0, "close_range succeeds");
}

/// Opens the file and gives it every number that the recorder may believe to be its own.
fn open_everywhere(path: &str) -> File {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("the host's file opens");
    for number in TAKEN
        .into_iter()
        .flatten()
        .filter(|number| *number != file.as_raw_fd())
    {
        // SAFETY: all these numbers were closed; the host may use them as it likes.
        let status = unsafe { libc::dup2(file.as_raw_fd(), number) };
        assert_eq!(status, number, "dup2 succeeds");
    }
    file
}

/// Returns the CPU time that the process uses while the host does nothing for 1.5 s.
fn idle_cpu_ms() -> u64 {
    let before = cpu_ms();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        std::thread::sleep(Duration::from_millis(100));
    }
    cpu_ms() - before
}

/// Returns the CPU time so far. The kernel counts ticks of 10 ms in the 12th and 13th field after the program's name.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the state of this process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    10 * ticks.map(crate::number).sum::<u64>()
}
