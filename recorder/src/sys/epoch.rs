//! Which recording of this process is under way: two words in a page that the kernel wipes in the child of a fork.
//!
//! The page is mapped once and stays. Who has seen an old number in it can therefore always look again, whatever happened meanwhile.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::sys::map::Map;

/// Where the word lies that events look at.
const RECORDING_AT: usize = 0;
/// Where the word lies that says whose process it is; not in the same cache line.
const OWNER_AT: usize = 256;

static PAGE: AtomicPtr<Map> = AtomicPtr::new(std::ptr::null_mut());

/// The two words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochWords {
    /// The epoch of the recording that takes events; 0 for none, and in the child of a fork.
    pub(crate) recording: &'static AtomicU32,
    /// The epoch of the recorder that this process has, whether it takes events or not; 0 for none, and in the child of a fork.
    pub(crate) owner: &'static AtomicU32,
}

impl EpochWords {
    /// The words of this process, which are mapped by the first call. One thread at a time comes here.
    pub(crate) fn of_process() -> io::Result<EpochWords> {
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
            recording: map.half(RECORDING_AT),
            owner: map.half(OWNER_AT),
        })
    }

    /// Whether the recording of this epoch takes events in this process.
    #[inline(always)]
    pub(crate) fn is_recording(self, epoch: u32) -> bool {
        self.recording.load(Ordering::Relaxed) == epoch
    }
}

/// Whether the recording of an epoch takes events in this process, for who has not kept the words.
#[inline]
pub(crate) fn is_recording(epoch: u32) -> bool {
    // SAFETY: as above.
    let map = unsafe { PAGE.load(Ordering::Acquire).as_ref() };
    map.is_some_and(|map| map.half(RECORDING_AT).load(Ordering::Relaxed) == epoch)
}
