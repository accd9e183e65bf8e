//! Who is starting the recorder, or a new recording: one thread at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys;
use crate::sys::clock;
use crate::sys::wait;

/// `pid << 32 | tid`, 0 for nobody. A pid of another process is the parent's, copied by a fork.
static STARTING: AtomicU64 = AtomicU64::new(0);

/// The right to start.
pub(crate) struct Starting;

impl Starting {
    /// Takes the right, also one that a fork cut in two. Returns `None` where another thread keeps it for so long, because it may hang in a file
    /// system. So it does where this very thread has it: something is recorded while starting, say by an allocator hook.
    pub(crate) fn take(patience_ns: u64) -> Option<Starting> {
        let me = u64::from(std::process::id()) << 32 | u64::from(sys::thread::tid());
        let start_ns = clock::now_ns();
        loop {
            let other = STARTING.load(Ordering::Acquire);
            if other == me {
                return None;
            }
            let is_stale = other >> 32 != me >> 32;
            if (other == 0 || is_stale)
                && STARTING
                    .compare_exchange(other, me, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(Starting);
            }
            if clock::now_ns() > start_ns + patience_ns {
                return None;
            }
            wait::pause(start_ns);
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.store(0, Ordering::Release);
    }
}
