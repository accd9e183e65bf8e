//! Monotonic and CPU time in integer nanoseconds, and wall-clock anchors.

use crate::format::Anchor;

/// How often a clock that refuses is asked again.
const AGAIN: u32 = 32;

/// Returns `CLOCK_MONOTONIC` in nanoseconds: the time axis every process of a host shares.
#[inline(always)]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the wall clock in nanoseconds since 1970.
pub(crate) fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns the calling thread's CPU time in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline(always)]
#[expect(
    clippy::cast_sign_loss,
    reason = "these clocks never show a negative time"
)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; an unknown clock leaves it zero.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return ask_again(clock);
    }
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Asks a clock that has refused once more, and a few times at most: whoever takes 0 for a time ends what it waits for too early. It is 0 where the clock
/// never answers.
#[cold]
#[expect(
    clippy::cast_sign_loss,
    reason = "these clocks never show a negative time"
)]
fn ask_again(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: as in `read`.
    let is_refused = |_: &u32| unsafe { libc::clock_gettime(clock, &mut time) } != 0;
    let _ = (0..AGAIN).take_while(is_refused).count();
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Reads both clocks; of five readings the one that took the shortest time.
pub(crate) fn anchor() -> Anchor {
    (0..5)
        .map(|_| read_pair())
        .min_by_key(|anchor| anchor.uncertainty_ns)
        .unwrap_or_else(read_pair)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_lie_between_two_reads() {
        let before = now_ns();
        let anchor = anchor();
        assert!((before..=now_ns()).contains(&anchor.monotonic_ns));
        assert!(anchor.realtime_ns > 1_500_000_000_000_000_000);
    }
}
