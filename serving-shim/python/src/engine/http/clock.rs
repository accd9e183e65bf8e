//! The kernel's coarse and exact clocks.

use std::mem::MaybeUninit;

/// Two clocks that count nanoseconds from the same moment.
pub(crate) trait Clocks {
    /// Reads the Linux kernel's coarse clock, in ns, which changes only with each timer tick. Returns 0 if a sandbox does not support it.
    fn coarse_ns(&self) -> i64;
    /// Reads the exact monotonic clock, in ns, which the recorder uses.
    fn now_ns(&self) -> i64;
}

/// The monotonic clocks of this machine.
pub(crate) struct Kernel;

impl Clocks for Kernel {
    fn coarse_ns(&self) -> i64 {
        read_ns(libc::CLOCK_MONOTONIC_COARSE)
    }

    fn now_ns(&self) -> i64 {
        read_ns(libc::CLOCK_MONOTONIC)
    }
}

/// Returns the length of a timer tick of the Linux kernel in ns, or 0 if a sandbox does not support the coarse clock.
pub(crate) fn tick_length_ns() -> i64 {
    // SAFETY: the kernel writes one `timespec`, for which there is room.
    time_ns(|time| unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, time) })
}

/// Reads one of the Linux kernel's clocks, in ns. Returns 0 if a sandbox does not support it.
pub(crate) fn read_ns(clock: libc::clockid_t) -> i64 {
    // SAFETY: the kernel writes one `timespec`, for which there is room.
    time_ns(|time| unsafe { libc::clock_gettime(clock, time) })
}

fn time_ns(read: impl FnOnce(*mut libc::timespec) -> libc::c_int) -> i64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    if read(time.as_mut_ptr()) != 0 {
        return 0;
    }
    // SAFETY: the structure consists of integers, for which zeros are valid too.
    let time = unsafe { time.assume_init() };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
