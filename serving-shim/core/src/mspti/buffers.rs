//! The buffers that MSPTI fills. Its threads take them and give them back; nothing here waits, allocates or fails on them.
//!
//! Another client of MSPTI may put its callbacks in the place of ours without a word. Then it is given buffers of ours, which it may free; so they come
//! of `malloc`. And we may be given its buffers: what is not ours is left alone.
#![expect(
    unsafe_code,
    reason = "writes where MSPTI says, and takes memory that others may free"
)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The least that MSPTI asks for without a warning.
const BYTES: usize = 2 << 20;
/// Only those are memory that were used.
const BUFFERS: usize = 16;

/// Nobody has it.
const FREE: u8 = 0;
/// MSPTI has it.
const GIVEN: u8 = 1;
/// It waits to be read.
const FULL: u8 = 2;

/// All of them.
pub(super) struct Buffers {
    buffers: [Buffer; BUFFERS],
    refused: AtomicU64,
}

struct Buffer {
    start: AtomicPtr<u8>,
    state: AtomicU8,
    /// The bytes of it that are records.
    valid: AtomicUsize,
}

/// A buffer to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) place: usize,
    pub(super) start: *mut u8,
    pub(super) valid: usize,
}

/// Those of this process: MSPTI's callbacks are told no client.
pub(super) static BUFFERS_OF_PROCESS: Buffers = Buffers::new();

impl Buffers {
    const fn new() -> Buffers {
        Buffers {
            buffers: [const { Buffer::new() }; BUFFERS],
            refused: AtomicU64::new(0),
        }
    }

    /// Takes the address space, once.
    pub(super) fn prepare(&self) {
        for buffer in &self.buffers {
            if buffer.start.load(Ordering::Relaxed).is_null() {
                // SAFETY: `malloc` may be called by anybody; the buffer is never given back.
                let start = unsafe { libc::malloc(BYTES) };
                buffer.start.store(start.cast(), Ordering::Release);
            }
        }
    }

    /// A buffer for MSPTI to fill, and its bytes; null if all wait to be read.
    fn give(&self) -> (*mut u8, usize) {
        for buffer in &self.buffers {
            let start = buffer.start.load(Ordering::Acquire);
            if !start.is_null() && buffer.changes(FREE, GIVEN) {
                return (start, BYTES);
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        (null_mut(), 0)
    }

    /// Takes a buffer back, if it is one of these.
    fn take_back(&self, start: *mut u8, valid: usize) {
        let is_it = |buffer: &&Buffer| buffer.start.load(Ordering::Relaxed) == start;
        if let Some(buffer) = self.buffers.iter().find(is_it)
            && !start.is_null()
            && buffer.state.load(Ordering::Acquire) == GIVEN
        {
            buffer.valid.store(valid.min(BYTES), Ordering::Relaxed);
            buffer.changes(GIVEN, FULL);
        }
    }

    /// A buffer that waits to be read. One thread at a time may ask, and must release it.
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

    /// It was read.
    pub(super) fn release(&self, filled: Filled) {
        self.buffers[filled.place].changes(FULL, FREE);
    }

    /// How often there was none since this was asked last: MSPTI then drops a record.
    pub(super) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }
}

impl Buffer {
    const fn new() -> Buffer {
        Buffer {
            start: AtomicPtr::new(null_mut()),
            state: AtomicU8::new(FREE),
            valid: AtomicUsize::new(0),
        }
    }

    fn changes(&self, from: u8, to: u8) -> bool {
        let order = Ordering::AcqRel;
        self.state
            .compare_exchange(from, to, order, Ordering::Relaxed)
            .is_ok()
    }
}

/// MSPTI needs a buffer.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    if buffer.is_null() || size.is_null() || records.is_null() {
        return;
    }
    let (start, bytes) = BUFFERS_OF_PROCESS.give();
    // SAFETY: MSPTI hands in three places to write to.
    unsafe { buffer.write(start) };
    // SAFETY: as above.
    unsafe { size.write(bytes) };
    // SAFETY: as above; as many as fit.
    unsafe { records.write(0) };
}

/// MSPTI gives a buffer back.
pub(super) unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    BUFFERS_OF_PROCESS.take_back(buffer, valid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_given_read_and_given_again() {
        let buffers = Buffers::new();
        assert_eq!(buffers.give().0, null_mut(), "none is there yet");
        buffers.prepare();
        let given: Vec<*mut u8> = (0..BUFFERS).map(|_| buffers.give().0).collect();
        assert!(given.iter().all(|start| !start.is_null()));
        assert_eq!(
            (buffers.give(), buffers.take_refused()),
            ((null_mut(), 0), 2)
        );
        assert_eq!(buffers.take_refused(), 0);
        assert!(buffers.filled().is_none());
        buffers.take_back(given[3], 112);
        let filled = buffers.filled().unwrap();
        assert_eq!((filled.start, filled.valid), (given[3], 112));
        buffers.release(filled);
        assert!(buffers.filled().is_none());
        assert_eq!(buffers.give().0, given[3]);
    }

    #[test]
    fn what_is_not_ours_or_not_given_is_left_alone() {
        let buffers = Buffers::new();
        buffers.prepare();
        let (start, _) = buffers.give();
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
