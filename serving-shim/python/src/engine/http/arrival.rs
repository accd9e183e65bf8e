//! When the newest data of a connection came. While the event loop is busy with others it reads nobody, and only the kernel knows.
//!
//! The kernel counts the time since then in ticks of 1 to 10 ms, so that an arrival is off by up to a tick.

use std::mem::{MaybeUninit, offset_of, size_of};

use sa_recorder::now_ns;

use super::signed;

/// Longest time for which data can be unread. A larger count is ignored.
const LONGEST_NS: i64 = 600_000_000_000;
const MS_NS: i64 = 1_000_000;

/// When data came, by the monotonic clock, and how far off that may be.
#[derive(Debug, PartialEq)]
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
    // Before the question: a thread that loses its core loses it on the way back from the kernel.
    let asked_ns = signed(now_ns());
    let unread_ns = last_data_received_ms(descriptor).map(|ms| i64::from(ms) * MS_NS);
    let tick_ns = tick_ns();
    match unread_ns.filter(|ns| tick_ns > 0 && *ns <= LONGEST_NS) {
        Some(unread_ns) => placed(tick_ns, read_ns, asked_ns - unread_ns, answered_ns),
        None => Arrival::exact(read_ns),
    }
}

/// Returns the arrival of data that was read at `read_ns` and came at `counted_ns` as the kernel counts.
fn placed(tick_ns: i64, read_ns: i64, counted_ns: i64, answered_ns: i64) -> Arrival {
    // The kernel cuts the time to whole milliseconds.
    let uncertainty_ns = (tick_ns + MS_NS - 1) / MS_NS * MS_NS;
    // On a new connection, one tick means anything up to two, or that hardly any time has passed.
    if answered_ns == 0 && counted_ns < read_ns && counted_ns + tick_ns >= read_ns {
        return Arrival {
            ns: read_ns - tick_ns / 2,
            uncertainty_ns: 2 * uncertainty_ns,
        };
    }
    // Since it was read, the thread may have waited for a core, and the kernel has counted on.
    let counted_ns = read_ns.min(counted_ns);
    // A client that waits for its answers sent the request after the last one.
    let waited = (counted_ns..counted_ns + tick_ns).contains(&answered_ns);
    Arrival {
        ns: if waited { answered_ns } else { counted_ns },
        uncertainty_ns,
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

#[cfg(test)]
mod tests {
    use super::{Arrival, MS_NS, placed};

    #[test]
    fn a_request_came_in_its_tick_and_after_the_last_answer() {
        let at = |ms: i64, uncertainty_ms: i64| Arrival {
            ns: ms * MS_NS,
            uncertainty_ns: uncertainty_ms * MS_NS,
        };
        let tick = 4;
        for (read, counted, answered, expected) in [
            (100, 60, 20, at(60, 4)),
            (100, 60, 62, at(62, 4)),
            (100, 60, 64, at(60, 4)),
            // Counted after it was read.
            (100, 108, 20, at(100, 4)),
            // New connections.
            (100, 96, 0, at(98, 8)),
            (100, 100, 0, at(100, 4)),
            (100, 92, 0, at(92, 4)),
        ] {
            let [tick, read, counted, answered] =
                [tick, read, counted, answered].map(|ms| ms * MS_NS);
            assert_eq!(placed(tick, read, counted, answered), expected);
        }
        assert_eq!(placed(10 * MS_NS / 3, 100, 0, 1).uncertainty_ns, 4 * MS_NS);
    }
}
