//! The epoch of this process's current recording: two numbers in a page that the kernel clears in
//! the child of a fork.
//!
//! The page is mapped once and stays mapped. A thread that holds an old epoch can therefore always
//! check it again.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::sys::map::Map;

/// Offset of the number that every event checks.
const RECORDING_AT: usize = 0;
/// Offset of the number that identifies the owning process. It is not in the same cache line.
const OWNER_AT: usize = 256;

static PAGE: AtomicPtr<Map> = AtomicPtr::new(std::ptr::null_mut());

/// The two numbers in the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochWords {
    /// Epoch of the recording that accepts events; 0 if there is none, and in the child of a fork.
    pub(crate) recording: &'static AtomicU32,
    /// Epoch of the process's recorder, whether it accepts events or not; 0 if there is none, and
    /// in the child of a fork.
    pub(crate) owner: &'static AtomicU32,
}

impl EpochWords {
    /// Returns the two epoch numbers of this process, which are in a page that the kernel clears in
    /// the child of a fork. The first call maps the page. Callers make sure that only one thread at
    /// a time calls this.
    pub(crate) fn get() -> io::Result<EpochWords> {
        // SAFETY: a non-null pointer came from `Box::leak`.
        let map = match unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
            Some(map) => map,
            None => {
                let map = Box::leak(Box::new(Map::wiped_by_fork()?));
                PAGE.store(map, Ordering::Release);
                map
            }
        };
        Ok(EpochWords {
            recording: map.u32_at(RECORDING_AT),
            owner: map.u32_at(OWNER_AT),
        })
    }

    /// Returns true if the recording with this epoch accepts events in this process.
    #[inline(always)]
    pub(crate) fn is_recording(self, epoch: u32) -> bool {
        self.recording.load(Ordering::Relaxed) == epoch
    }
}

/// Returns true if the recording with this epoch accepts events in this process. For callers that
/// do not have the [`EpochWords`].
#[inline]
pub(crate) fn is_recording(epoch: u32) -> bool {
    // SAFETY: a non-null pointer came from `Box::leak`.
    let map = unsafe { PAGE.load(Ordering::Acquire).as_ref() };
    map.is_some_and(|map| map.u32_at(RECORDING_AT).load(Ordering::Relaxed) == epoch)
}
