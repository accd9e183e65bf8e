//! The clocks of the measurement, read without the recorder's help.
#![expect(unsafe_code, reason = "clock_gettime")]

use std::hint::black_box;

/// Reads `CLOCK_MONOTONIC` in ns.
#[inline(always)]
pub fn wall_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Reads the calling thread's CPU time in ns.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Reads the CPU time of all threads of the process in ns.
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline(always)]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec that the call may fill.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Measures the floor: ns of two clock reads, the least that any span with a duration costs.
pub fn floor_ns(pairs: u64) -> f64 {
    let start = wall_ns();
    for _ in 0..pairs {
        black_box(wall_ns());
        black_box(wall_ns());
    }
    (wall_ns() - start) as f64 / pairs as f64
}
