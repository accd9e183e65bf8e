//! Sleeps. The standard library's sleep panics if the kernel refuses it (a seccomp filter), and a
//! panic at exit ends the host. These functions return early instead.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps for `time`. If the kernel refuses every way to sleep, yields to other threads once.
pub fn sleep(time: Duration) {
    let time = timespec(time);
    let none = std::ptr::null_mut();
    // SAFETY: the time is valid, and a null pointer means that the remaining time is not wanted.
    // The result is an error number.
    let refused = unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, none) };
    if refused == 0 || refused == libc::EINTR {
        return;
    }
    // More filters allow this call.
    let (none, mask) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: there are no descriptors, the time is valid, and there is no mask.
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

/// A sleep that other threads can end early.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicU32);

/// Nothing has happened.
const SILENT: u32 = 0;
/// The bell was rung and its thread has not noticed yet.
const RUNG: u32 = 1;
/// The thread is asleep.
const ASLEEP: u32 = 2;

impl Bell {
    /// Wakes the thread that sleeps in [`Bell::wait`], or makes its next sleep end at once.
    pub(crate) fn ring(&self) {
        if self.0.swap(RUNG, Ordering::Release) == ASLEEP {
            // SAFETY: wakes a thread that waits at the word, and does not access the word.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAKE, 1) };
        }
    }

    /// Puts the calling thread to sleep until another thread calls [`Bell::ring`], at most for
    /// `time`. Returns true if that happened. A signal also ends the sleep.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let states = (Ordering::Acquire, Ordering::Acquire);
        let sleeps = self.0.compare_exchange(SILENT, ASLEEP, states.0, states.1);
        if sleeps.is_ok() {
            self.wait_asleep(time);
        }
        self.0.swap(SILENT, Ordering::AcqRel) == RUNG // everything done before the ring is visible from here on
    }

    fn wait_asleep(&self, time: Duration) {
        let limit = timespec(time);
        let limit = &raw const limit;
        // SAFETY: the word lives as long as `self`, and the time lives for the call.
        let woken = unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAIT, ASLEEP, limit) };
        let refused = woken < 0
            && !matches!(
                std::io::Error::last_os_error().raw_os_error(),
                Some(libc::ETIMEDOUT | libc::EAGAIN | libc::EINTR)
            );
        if refused {
            sleep(time.min(MAX_BLIND_SLEEP)); // a ring meanwhile is noticed afterwards
        }
    }
}

const WAIT: libc::c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: libc::c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
/// Maximum sleep if the thread cannot be woken.
const MAX_BLIND_SLEEP: Duration = Duration::from_millis(1);

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
        assert!(bell.wait(Duration::from_secs(600))); // it was already rung
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
