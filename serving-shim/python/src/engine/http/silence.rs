//! Asks the kernel for how long a TCP connection has received nothing.

use std::mem::{MaybeUninit, offset_of, size_of};

use super::clock::Clocks;

/// Maximum number of attempts if the clock ticks during one.
const TRIES: u32 = 3;

/// The time for which a connection has received nothing.
pub(crate) struct Silence {
    /// Value of the coarse clock. The kernel counts up to the tick that this clock shows.
    pub(crate) coarse_ns: i64,
    /// Time at which the kernel was asked.
    pub(crate) asked_ns: i64,
    /// Time since the last data in milliseconds, or `None` if the descriptor is not a TCP socket.
    pub(crate) unread_ms: Option<u32>,
}

/// Asks the Linux kernel for how long a TCP connection has received nothing. Asks again, at most twice, if the coarse clock ticks meanwhile.
pub(crate) fn tcp_silence(clocks: &impl Clocks, descriptor: i32) -> Silence {
    let mut tries = 1;
    loop {
        let found = Silence {
            coarse_ns: clocks.coarse_ns(),
            asked_ns: clocks.now_ns(),
            unread_ms: last_data_received_ms(descriptor),
        };
        if tries == TRIES || found.unread_ms.is_none() || clocks.coarse_ns() == found.coarse_ns {
            return found;
        }
        tries += 1;
    }
}

fn last_data_received_ms(descriptor: i32) -> Option<u32> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: there is room for `len` bytes, and the kernel writes no more.
    let done = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let info = unsafe { info.assume_init() };
    (done == 0 && has_last_data(len)).then_some(info.tcpi_last_data_recv)
}

/// Returns true if the first `len` bytes of `tcp_info` include the time since the last data arrived. Older kernels have a shorter structure.
fn has_last_data(len: libc::socklen_t) -> bool {
    let end = offset_of!(libc::tcp_info, tcpi_last_data_recv) + size_of::<u32>();
    usize::try_from(len).is_ok_and(|len| len >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_structure_of_older_kernels_is_enough() {
        // Linux 2.6 had 104 bytes, and 5.15 has 232.
        assert!(has_last_data(104) && has_last_data(232));
        assert!(!has_last_data(0) && !has_last_data(55));
    }
}
