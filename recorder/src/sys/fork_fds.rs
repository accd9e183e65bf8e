//! Descriptors that the child of a fork must close. Otherwise it would hold the locks of a parent
//! that may die first.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::sys::fd::{FileId, Numbered};

/// Index of the fragment's descriptor.
pub(crate) const FRAGMENT: usize = 0;
/// Index of the run file's descriptor.
pub(crate) const RUN: usize = 1;
/// Index of the ring's descriptor.
pub(crate) const RING: usize = 2;
/// Indexes of removed segments. If they stayed open in a child, their disk blocks would not be
/// freed.
const REMOVED: [usize; 2] = [3, 4];
/// Index of a new segment until the one before it is closed.
pub(crate) const NEXT: usize = 5;

struct ForkFd {
    file: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static FDS: [ForkFd; 6] = [const {
    ForkFd {
        file: AtomicI32::new(-1),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; 6];

/// Registers a descriptor under the index `place`. The child of a later fork closes it.
pub(crate) fn register(place: usize, file: Numbered) {
    let fd = &FDS[place];
    fd.file.store(-1, Ordering::Release);
    fd.device.store(file.id.device, Ordering::Relaxed);
    fd.inode.store(file.id.inode, Ordering::Relaxed);
    fd.file.store(file.number, Ordering::Release);
}

/// Returns a free index under which a removed segment can be registered, if there is one.
pub(crate) fn free_removed_index() -> Option<usize> {
    let is_free = |place: &usize| FDS[*place].file.load(Ordering::Acquire) < 0;
    REMOVED.into_iter().find(is_free)
}

/// Removes the descriptor under an index from the list that the child of a fork closes.
pub(crate) fn forget(place: usize) {
    FDS[place].file.store(-1, Ordering::Release);
}

/// Removes the descriptor `file` from the list that the child of a fork closes, unless another one
/// has taken its index `place`.
pub(crate) fn forget_if(place: usize, file: RawFd) {
    let fd = &FDS[place].file;
    let _ = fd.compare_exchange(file, -1, Ordering::AcqRel, Ordering::Relaxed); // fails if another file has the index
}

/// Closes the registered descriptors whose numbers still refer to our files. Runs in the child of a
/// fork, so it only makes async-signal-safe calls.
pub(crate) unsafe extern "C" fn close_in_child() {
    for fd in &FDS {
        let number = fd.file.swap(-1, Ordering::AcqRel);
        if number >= 0 {
            let id = FileId {
                device: fd.device.load(Ordering::Relaxed),
                inode: fd.inode.load(Ordering::Relaxed),
            };
            Numbered { number, id }.close();
        }
    }
}
