//! The buffers that MSPTI fills. Its threads take them and give them back; nothing here waits, allocates or fails on them.
//!
//! Another client of MSPTI may replace our callbacks without notice. Then it gets buffers of ours, which it may free, so they come from `malloc`. We may
//! also get its buffers: those are left alone.
#![expect(unsafe_code, reason = "writes to MSPTI's pointers, and takes memory")]

use ascend_sys::mspti::{msptiActivityCommunication, msptiActivityKernel};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Size of a buffer: the least that MSPTI accepts without a warning.
const BYTES: usize = 2 << 20;
/// Number of buffers. Unused buffers take no memory.
const BUFFERS: usize = 16;

/// Length of the shortest record.
pub(super) const RECORD: usize = size_of::<msptiActivityKernel>();
const _: () = assert!(RECORD < size_of::<msptiActivityCommunication>());

/// State of a buffer that nobody has.
const FREE: u8 = 0;
/// MSPTI has it.
const GIVEN: u8 = 1;
/// It waits to be read.
const FULL: u8 = 2;

/// The buffers.
pub(super) struct Buffers {
    buffers: [Buffer; BUFFERS],
    /// Buffer for every request while all others wait to be read; nobody reads it. Without a buffer MSPTI would start a thread for each record.
    scrap: AtomicPtr<u8>,
    /// Number of records in it.
    refused: AtomicU64,
}

struct Buffer {
    start: AtomicPtr<u8>,
    state: AtomicU8,
    /// Number of bytes that are records.
    valid: AtomicUsize,
}

/// A buffer to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) place: usize,
    pub(super) start: *mut u8,
    pub(super) valid: usize,
}

/// The buffers of this process: MSPTI does not pass a client to its callbacks.
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

    /// Takes the address space, once. Returns true if there is enough.
    pub(super) fn prepare(&self) -> bool {
        let starts = self.buffers.iter().map(|buffer| &buffer.start);
        for start in starts.chain([&self.scrap]) {
            if start.load(Ordering::Relaxed).is_null() {
                // SAFETY: `malloc` may be called by any thread; the buffer is never given back.
                let bytes = unsafe { libc::malloc(BYTES) };
                start.store(bytes.cast(), Ordering::Release);
            }
        }
        !self.scrap.load(Ordering::Relaxed).is_null()
    }

    /// Returns a buffer for MSPTI to fill.
    fn give(&self) -> *mut u8 {
        for buffer in &self.buffers {
            let start = buffer.start.load(Ordering::Acquire);
            if !start.is_null() && buffer.changes(FREE, GIVEN) {
                return start;
            }
        }
        self.scrap.load(Ordering::Acquire)
    }

    /// Takes a buffer back, if it is ours.
    fn take_back(&self, start: *mut u8, valid: usize) {
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
            && buffer.state.load(Ordering::Acquire) == GIVEN
        {
            buffer.valid.store(valid.min(BYTES), Ordering::Relaxed);
            buffer.changes(GIVEN, FULL);
        }
    }

    /// Returns a buffer that waits to be read. Only one thread at a time may ask, and it must release the buffer.
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

    /// Frees a buffer that was read.
    pub(super) fn release(&self, filled: Filled) {
        self.buffers[filled.place].changes(FULL, FREE);
    }

    /// Returns how many records found no room since the last call.
    pub(super) fn take_refused(&self) -> u64 {
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

/// Gives MSPTI a buffer.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    if buffer.is_null() || size.is_null() || records.is_null() {
        return;
    }
    // SAFETY: MSPTI passes three places to write to.
    unsafe { buffer.write(BUFFERS_OF_PROCESS.give()) };
    // SAFETY: as above.
    unsafe { size.write(BYTES) };
    // SAFETY: as above; as many as fit.
    unsafe { records.write(0) };
}

/// Takes a buffer back from MSPTI.
pub(super) unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    BUFFERS_OF_PROCESS.take_back(buffer, valid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_wait_to_be_read_there_is_one_that_nobody_reads() {
        let buffers = Buffers::new();
        assert!(buffers.prepare());
        let given: Vec<*mut u8> = (0..BUFFERS).map(|_| buffers.give()).collect();
        let (scrap, again) = (buffers.give(), buffers.give());
        assert!(!scrap.is_null() && scrap == again && !given.contains(&scrap));
        buffers.take_back(scrap, 3 * RECORD);
        buffers.take_back(again, RECORD);
        assert!(buffers.filled().is_none());
        assert_eq!((buffers.take_refused(), buffers.take_refused()), (4, 0));
    }

    #[test]
    fn a_buffer_that_is_not_ours_or_not_given_is_left_alone() {
        let buffers = Buffers::new();
        assert!(buffers.prepare());
        let start = buffers.give();
        let mut other = 0u8;
        buffers.take_back(&raw mut other, 56);
        buffers.take_back(null_mut(), 0);
        assert!(buffers.filled().is_none());
        buffers.take_back(start, usize::MAX);
        let filled = buffers.filled().unwrap();
        assert_eq!(filled.valid, BYTES, "no more than there is");
        buffers.take_back(start, 56);
        assert_eq!(
            buffers.filled().unwrap().valid,
            BYTES,
            "it has been read yet"
        );
    }
}
