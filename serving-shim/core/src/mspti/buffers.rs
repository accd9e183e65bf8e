//! The buffers that MSPTI fills. MSPTI's threads request and return them, and these callbacks do not wait, allocate or fail.
//!
//! Another client of MSPTI may replace our callbacks without notice. Then it may get our buffers and free them, so they come from `malloc`. We may
//! also get its buffers, which we ignore.
#![expect(
    unsafe_code,
    reason = "writes to MSPTI's pointers, and allocates memory"
)]

use ascend_sys::mspti::{msptiActivityCommunication, msptiActivityKernel};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Size of a buffer, the minimum that MSPTI accepts without a warning.
const BYTES: usize = 2 << 20;
/// Number of buffers. Unused buffers use no memory.
const BUFFERS: usize = 16;

/// Length of the shortest record.
pub(super) const RECORD: usize = size_of::<msptiActivityKernel>();
const _: () = assert!(RECORD < size_of::<msptiActivityCommunication>());

/// State of a free buffer.
const FREE: u8 = 0;
/// State of a buffer that MSPTI has.
const REQUESTED: u8 = 1;
/// State of a buffer that waits to be read.
const FULL: u8 = 2;

/// The buffers.
pub(super) struct Buffers {
    buffers: [Buffer; BUFFERS],
    /// Buffer for all requests while the others wait to be read. It is never read. Without a buffer, MSPTI would start a thread for each record.
    scrap: AtomicPtr<u8>,
    /// Number of records in that buffer.
    refused: AtomicU64,
}

struct Buffer {
    start: AtomicPtr<u8>,
    state: AtomicU8,
    /// Number of bytes of records.
    valid: AtomicUsize,
}

/// A buffer to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) place: usize,
    pub(super) start: *mut u8,
    pub(super) valid: usize,
}

/// The buffers of this process, which are static because MSPTI passes no user data to its callbacks.
pub(super) static BUFFERS_OF_PROCESS: Buffers = Buffers::new();

impl Buffers {
    const fn new() -> Buffers {
        Buffers {
            buffers: [const {
                Buffer {
                    start: AtomicPtr::new(null_mut()),
                    state: AtomicU8::new(FREE),
                    valid: AtomicUsize::new(0),
                }
            }; BUFFERS],
            scrap: AtomicPtr::new(null_mut()),
            refused: AtomicU64::new(0),
        }
    }

    /// Allocates the buffers for MSPTI's records on the first call. Returns true if there is enough address space.
    pub(super) fn prepare(&self) -> bool {
        let starts = self.buffers.iter().map(|buffer| &buffer.start);
        for start in starts.chain([&self.scrap]) {
            if start.load(Ordering::Relaxed).is_null() {
                // SAFETY: `malloc` may be called by any thread, and the buffer is never freed.
                let bytes = unsafe { libc::malloc(BYTES) };
                start.store(bytes.cast(), Ordering::Release);
            }
        }
        !self.scrap.load(Ordering::Relaxed).is_null()
    }

    /// Returns the address of a free buffer that MSPTI may fill with records. If all wait to be read, returns the one that is never read.
    fn provide(&self) -> *mut u8 {
        for buffer in &self.buffers {
            let start = buffer.start.load(Ordering::Acquire);
            if !start.is_null() && buffer.changes(FREE, REQUESTED) {
                return start;
            }
        }
        self.scrap.load(Ordering::Acquire)
    }

    /// Marks a buffer as filled with `valid` bytes of records, if the buffer at the address `start` is ours.
    fn mark_filled(&self, start: *mut u8, valid: usize) {
        if start.is_null() {
            return;
        }
        if start == self.scrap.load(Ordering::Relaxed) {
            let records = valid / RECORD;
            self.refused.fetch_add(records as u64, Ordering::Relaxed);
            return;
        }
        let starts_here = |buffer: &&Buffer| buffer.start.load(Ordering::Relaxed) == start;
        if let Some(buffer) = self.buffers.iter().find(starts_here)
            && buffer.state.load(Ordering::Acquire) == REQUESTED
        {
            buffer.valid.store(valid.min(BYTES), Ordering::Relaxed);
            buffer.changes(REQUESTED, FULL);
        }
    }

    /// Returns a buffer whose records wait to be read, or `None`. Only one thread at a time may call this, and it must release the buffer.
    pub(super) fn filled(&self) -> Option<Filled> {
        let is_full = |buffer: &Buffer| buffer.state.load(Ordering::Acquire) == FULL;
        let place = self.buffers.iter().position(is_full)?;
        let buffer = &self.buffers[place];
        Some(Filled {
            place,
            start: buffer.start.load(Ordering::Relaxed),
            valid: buffer.valid.load(Ordering::Relaxed),
        })
    }

    /// Makes a buffer whose records were read available to MSPTI again.
    pub(super) fn release(&self, filled: Filled) {
        self.buffers[filled.place].changes(FULL, FREE);
    }

    /// Returns the number of MSPTI's records that found no buffer since the last call.
    pub(super) fn drain_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }
}

impl Buffer {
    fn changes(&self, from: u8, to: u8) -> bool {
        let (set, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let changed = self.state.compare_exchange(from, to, set, failed);
        changed.is_ok()
    }
}

/// Provides a buffer for records. MSPTI calls this when it needs one, and gets the address and the size.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    if buffer.is_null() || size.is_null() || records.is_null() {
        return;
    }
    // SAFETY: MSPTI passes three writable pointers.
    unsafe { buffer.write(BUFFERS_OF_PROCESS.provide()) };
    // SAFETY: as above.
    unsafe { size.write(BYTES) };
    // SAFETY: as above. 0 means as many records as fit.
    unsafe { records.write(0) };
}

/// Accepts a buffer with `valid` bytes of records. MSPTI calls this when it has filled the buffer.
pub(super) unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    BUFFERS_OF_PROCESS.mark_filled(buffer, valid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_all_buffers_wait_to_be_read_mspti_gets_one_that_is_never_read() {
        let buffers = Buffers::new();
        assert!(buffers.prepare());
        let provided: Vec<*mut u8> = (0..BUFFERS).map(|_| buffers.provide()).collect();
        let (scrap, again) = (buffers.provide(), buffers.provide());
        assert!(!scrap.is_null() && scrap == again && !provided.contains(&scrap));
        buffers.mark_filled(scrap, 3 * RECORD);
        buffers.mark_filled(again, RECORD);
        assert!(buffers.filled().is_none());
        assert_eq!((buffers.drain_refused(), buffers.drain_refused()), (4, 0));
    }

    #[test]
    fn buffers_that_are_not_ours_or_not_requested_are_ignored() {
        let buffers = Buffers::new();
        assert!(buffers.prepare());
        let start = buffers.provide();
        let mut other = 0u8;
        buffers.mark_filled(&raw mut other, 56);
        buffers.mark_filled(null_mut(), 0);
        assert!(buffers.filled().is_none());
        buffers.mark_filled(start, usize::MAX);
        let filled = buffers.filled().unwrap();
        assert_eq!(filled.valid, BYTES, "no more than there is");
        buffers.mark_filled(start, 56);
        assert_eq!(
            buffers.filled().unwrap().valid,
            BYTES,
            "it has been read yet"
        );
    }
}
