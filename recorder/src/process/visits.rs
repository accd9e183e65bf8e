//! When the threads that record came by, and when they shall next.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::process::rounds::Rounds;
use crate::sys::clock;

/// When threads come by.
#[derive(Debug)]
pub(crate) struct Visits {
    pub(super) began_ns: u64,
    pub(super) next_ns: AtomicU64,
    /// How often a ring was full so far that it was flushed.
    pub(super) full: AtomicU32,
    /// What a helper would tell from time to time, where there may be none.
    pub(super) rounds: Mutex<Rounds>,
}

impl Default for Visits {
    fn default() -> Visits {
        let now_ns = clock::now_ns();
        Visits {
            began_ns: now_ns,
            next_ns: AtomicU64::new(0),
            full: AtomicU32::new(0),
            rounds: Mutex::new(Rounds::new(now_ns)),
        }
    }
}
