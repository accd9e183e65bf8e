//! For how long a TCP connection has received nothing, as the kernel counts it.

use std::mem::{MaybeUninit, offset_of, size_of};

use super::clock::Clocks;

/// Maximum number of attempts if the clock ticks during one.
const TRIES: u32 = 3;

/// For how long a connection had received nothing.
pub(crate) struct Silence {
    /// The coarse clock. The kernel counts from the tick that it shows.
    pub(crate) coarse_ns: i64,
    /// When the kernel was asked.
    pub(crate) asked_ns: i64,
    /// In milliseconds; `None` if the descriptor is not a TCP socket.
    pub(crate) unread_ms: Option<u32>,
}

/// Asks the kernel, again if the coarse clock changes meanwhile.
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
    // SAFETY: numbers, for which zeros are good.
    let info = unsafe { info.assume_init() };
    (done == 0 && has_last_data(len)).then_some(info.tcpi_last_data_recv)
}

/// Returns true if `len` bytes of `tcp_info` contain the time since data came. Older kernels have a shorter structure.
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
