//! When the newest data of a connection came. While the event loop is busy with others it reads nobody, and only the kernel knows.
//!
//! The kernel counts the time since then in ticks of 1 to 10 ms, so that an arrival is off by up to a tick.

use std::mem::{MaybeUninit, offset_of, size_of};

use sa_recorder::now_ns;

use super::signed;

/// Longest time for which data can be unread. A larger count is ignored.
const LONGEST_NS: i64 = 600_000_000_000;

/// When data came, by the monotonic clock, and how far off that may be.
pub(crate) struct Arrival {
    pub(crate) ns: i64,
    pub(crate) uncertainty_ns: i64,
}

impl Arrival {
    /// Creates one of data that came when it was read.
    pub(crate) fn exact(ns: i64) -> Arrival {
        Arrival {
            ns,
            uncertainty_ns: 0,
        }
    }
}

/// Returns when the newest data of a connection came, which was read at `read_ns`. At `answered_ns` the connection's last
/// answer was sent, or it is 0. For what is not a TCP connection, data comes when it is read.
pub(crate) fn arrival(descriptor: i32, read_ns: i64, answered_ns: i64) -> Arrival {
    let tick_ns = tick_ns();
    let unread_ns = last_data_received_ms(descriptor).map(|ms| i64::from(ms) * 1_000_000);
    let Some(unread_ns) = unread_ns.filter(|ns| tick_ns > 0 && *ns <= LONGEST_NS) else {
        return Arrival::exact(read_ns);
    };
    // Since it was read, the thread may have waited for a core, and the kernel has counted on.
    let counted_ns = read_ns.min(signed(now_ns()) - unread_ns);
    // A client that waits for its answers sent the request after the last one.
    let waited = (counted_ns..counted_ns + tick_ns).contains(&answered_ns);
    Arrival {
        ns: if waited { answered_ns } else { counted_ns },
        uncertainty_ns: tick_ns,
    }
}

/// Returns how long a tick of the kernel is, or 0 where a sandbox does not say.
fn tick_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec`, for which there is room.
    match unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) } {
        0 => time.tv_nsec,
        _ => 0,
    }
}

/// Returns how long ago the newest data of a TCP connection came, or `None` if this descriptor is of no TCP connection.
fn last_data_received_ms(descriptor: i32) -> Option<u32> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the place has `len` bytes, and the kernel writes no more.
    let done = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    // Older kernels have a shorter structure.
    let end = offset_of!(libc::tcp_info, tcpi_last_data_recv) + size_of::<u32>();
    let is_there = done == 0 && usize::try_from(len).is_ok_and(|len| len >= end);
    // SAFETY: numbers, for which zeros are good.
    is_there.then(|| unsafe { info.assume_init() }.tcpi_last_data_recv)
}
