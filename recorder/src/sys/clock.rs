//! Monotonic and CPU time in integer nanoseconds, and wall-clock anchors.

use sa_format::Anchor;

/// Number of times that a failed clock read is retried.
const RETRIES: u32 = 32;

/// Returns `CLOCK_MONOTONIC` in nanoseconds: the time axis that all processes of a host share.
#[inline(always)]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the wall-clock time in nanoseconds since 1970 (UTC).
pub(crate) fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns the calling thread's CPU time in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline(always)]
fn read(clock: libc::clockid_t) -> u64 {
    try_read(clock).unwrap_or_else(|| retry_read(clock))
}

/// Returns the time of a clock in nanoseconds, or `None` if the system refuses to read it.
#[inline(always)]
#[expect(
    clippy::cast_sign_loss,
    reason = "these clocks never show a negative time"
)]
fn try_read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; an unknown clock is an error.
    let succeeded = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    let whole_ns = (time.tv_sec as u64).wrapping_mul(1_000_000_000);
    succeeded.then_some(whole_ns.wrapping_add(time.tv_nsec as u64))
}

/// Reads a clock again after a failure, up to 32 times, because a caller that waits for a time
/// would stop too early if it got 0. Returns nanoseconds, or 0 if no read succeeds.
#[cold]
fn retry_read(clock: libc::clockid_t) -> u64 {
    (0..RETRIES).find_map(|_| try_read(clock)).unwrap_or(0)
}

/// Returns a pair of simultaneous monotonic and wall-clock times. Reads both clocks five times and
/// chooses the pair that took the shortest time to read.
pub fn anchor() -> Anchor {
    let pairs = (0..5).map(|_| read_pair());
    let best = pairs.min_by_key(|pair| pair.uncertainty_ns);
    best.unwrap_or_else(read_pair)
}

fn read_pair() -> Anchor {
    let before = now_ns();
    let realtime_ns = realtime_ns();
    let width = now_ns().saturating_sub(before);
    Anchor {
        monotonic_ns: before + width / 2,
        realtime_ns,
        uncertainty_ns: width.div_ceil(2),
    }
}
