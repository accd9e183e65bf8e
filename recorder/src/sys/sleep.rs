//! Sleeps. The standard library's panic where the kernel refuses them (a seccomp filter), and a panic at exit ends the host. These come back early
//! instead.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps for so long. Where the kernel refuses each way to do so, others run for a moment.
pub fn sleep(time: Duration) {
    let time = timespec(time);
    let none = std::ptr::null_mut();
    // SAFETY: a valid time; what is left of it is not asked for. The result is an error number.
    let refused = unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, none) };
    if refused == 0 || refused == libc::EINTR {
        return;
    }
    // More filters allow this call.
    let (none, mask) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: no descriptors are looked at; the time is valid, and no mask is given.
    if unsafe { libc::ppoll(none, 0, &raw const time, mask) } < 0 {
        std::thread::yield_now();
    }
}

pub(super) fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// What a thread sleeps by that others may wake.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicU32);

/// Nothing has happened.
const SILENT: u32 = 0;
/// It was rung, and nobody has heard it yet.
const RUNG: u32 = 1;
/// Its thread sleeps.
const ASLEEP: u32 = 2;

impl Bell {
    /// Wakes the thread, or ends its next sleep at once.
    pub(crate) fn ring(&self) {
        if self.0.swap(RUNG, Ordering::Release) == ASLEEP {
            // SAFETY: wakes whoever waits at the word, which is not touched.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAKE, 1) };
        }
    }

    /// Sleeps until it is rung, for `time` at most. Tells whether it was: a signal ends a sleep early.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let states = (Ordering::Acquire, Ordering::Acquire);
        let sleeps = self.0.compare_exchange(SILENT, ASLEEP, states.0, states.1);
        if sleeps.is_ok() {
            self.wait_asleep(time);
        }
        self.0.swap(SILENT, Ordering::AcqRel) == RUNG // what was done before it was rung is seen from here on
    }

    fn wait_asleep(&self, time: Duration) {
        let limit = timespec(time);
        let limit = &raw const limit;
        // SAFETY: the word lives as long as `self`, the time for the call.
        let woken = unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAIT, ASLEEP, limit) };
        let refused = woken < 0
            && !matches!(
                std::io::Error::last_os_error().raw_os_error(),
                Some(libc::ETIMEDOUT | libc::EAGAIN | libc::EINTR)
            );
        if refused {
            sleep(time.min(UNWOKEN)); // who rings is heard then
        }
    }
}

const WAIT: libc::c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: libc::c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
/// Longest sleep where nobody can be woken.
const UNWOKEN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_sleep_takes_its_time_and_a_bell_ends_it() {
        let start = Instant::now();
        sleep(Duration::from_millis(2));
        assert!(!Bell::default().wait(Duration::from_millis(2)));
        assert!(start.elapsed() >= Duration::from_millis(4));
        let bell = Arc::new(Bell::default());
        bell.ring();
        assert!(bell.wait(Duration::from_secs(600))); // it was rung before
        let (rings, heard) = (bell.clone(), Arc::new(AtomicU32::new(0)));
        let until = heard.clone();
        let ringer = std::thread::spawn(move || {
            while until.load(Ordering::Relaxed) == 0 {
                rings.ring();
            }
        });
        bell.wait(Duration::from_secs(600));
        heard.store(1, Ordering::Relaxed);
        ringer.join().unwrap();
    }
}
