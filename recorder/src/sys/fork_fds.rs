//! Descriptors that the child of a fork must close: with them it would keep the locks of a parent that may die first.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::sys::fd::{FileId, Numbered};

/// Place of the fragment's descriptor.
pub(crate) const FRAGMENT: usize = 0;
/// Place of the run file's descriptor.
pub(crate) const RUN: usize = 1;
/// Place of the ring's descriptor.
pub(crate) const RING: usize = 2;
/// Places of removed segments: open in a child, they would keep their blocks.
const DOOMED: [usize; 2] = [3, 4];
/// Place of a new segment, until the one before it is closed.
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

/// Notes a descriptor for the child of a later fork.
pub(crate) fn hold(place: usize, file: Numbered) {
    let fd = &FDS[place];
    fd.file.store(-1, Ordering::Release);
    fd.device.store(file.id.device, Ordering::Relaxed);
    fd.inode.store(file.id.inode, Ordering::Relaxed);
    fd.file.store(file.number, Ordering::Release);
}

/// A place for a removed segment, if one is free.
pub(crate) fn free_doomed() -> Option<usize> {
    let is_free = |place: &usize| FDS[*place].file.load(Ordering::Acquire) < 0;
    DOOMED.into_iter().find(is_free)
}

/// Forgets a descriptor.
pub(crate) fn let_go(place: usize) {
    FDS[place].file.store(-1, Ordering::Release);
}

/// Forgets a descriptor, unless another one has its place.
pub(crate) fn let_go_if(place: usize, file: RawFd) {
    let fd = &FDS[place].file;
    let _ = fd.compare_exchange(file, -1, Ordering::AcqRel, Ordering::Relaxed); // another one's place stays
}

/// Closes what is held, where the numbers still mean our files. Runs in the child of a fork: async-signal-safe calls only.
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
