//! The client's side of MSPTI: requests for buffers, the buffer that is being filled, and the ones that were given back to be read.

use crate::Outcome;
use crate::refuse;
use crate::wait::lock;
use ascend_sys::mspti::{self, msptiActivityCommunication, msptiActivityKernel};
use ascend_sys::types::*;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

thread_local! {
    /// Position of the calling thread in the buffer that it reads.
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// The callbacks, and the buffers.
#[derive(Default)]
pub(crate) struct Client {
    callbacks: Mutex<Callbacks>,
    current: Mutex<Option<Buffer>>,
    /// Buffers that the client may read, with the number of bytes that are records.
    readable: Mutex<HashMap<usize, usize>>,
    /// The thread that gives full buffers back.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Clone, Copy, Default)]
struct Callbacks {
    requested: msptiBuffersCallbackRequestFunc,
    completed: msptiBuffersCallbackCompleteFunc,
}

/// A buffer, by its address.
struct Buffer {
    address: usize,
    size: usize,
    valid: usize,
}

impl Client {
    /// Whoever comes last has the callbacks.
    pub(crate) fn register(
        &self,
        requested: msptiBuffersCallbackRequestFunc,
        completed: msptiBuffersCallbackCompleteFunc,
    ) -> Outcome {
        if requested.is_none() || completed.is_none() {
            return Err(MSPTI_ERROR_INVALID_PARAMETER);
        }
        *lock(&self.callbacks) = Callbacks {
            requested,
            completed,
        };
        Ok(())
    }

    /// Puts a record into a buffer, if there is room.
    pub(crate) fn take<R: Copy>(&'static self, record: &R) {
        let mut current = lock(&self.current);
        if current.as_ref().is_some_and(Buffer::is_nearly_full)
            && let Some(full) = current.take()
        {
            self.give_back_later(full);
        }
        current.get_or_insert_with(|| self.request()).write(record);
    }

    fn request(&self) -> Buffer {
        let callbacks = *lock(&self.callbacks);
        let (mut buffer, mut size, mut records) = (std::ptr::null_mut(), 0, 0);
        if let Some(requested) = callbacks.requested {
            // SAFETY: the client's function; all three are writable for the call.
            unsafe { requested(&raw mut buffer, &raw mut size, &raw mut records) };
        }
        if buffer.is_null() {
            refuse(
                "a client of MSPTI had no buffer: the vendor's starts a thread for each record then",
            );
        }
        let address = buffer.expose_provenance();
        lock(&self.readable).remove(&address);
        Buffer {
            address,
            size,
            valid: 0,
        }
    }

    fn give_back_later(&'static self, buffer: Buffer) {
        let gives = thread::Builder::new().name("sim-mspti-full".to_owned());
        let gives = gives.spawn(move || self.give_back(&buffer));
        if let Ok(gives) = gives {
            let mut threads = lock(&self.threads);
            threads.retain(|thread| !thread.is_finished());
            threads.push(gives);
        }
    }

    fn give_back(&self, buffer: &Buffer) {
        lock(&self.readable).insert(buffer.address, buffer.valid);
        let callbacks = *lock(&self.callbacks);
        if let Some(completed) = callbacks.completed {
            let address = std::ptr::with_exposed_provenance_mut(buffer.address);
            // SAFETY: the client's function, with a buffer that a client gave.
            unsafe { completed(address, buffer.size, buffer.valid) };
        }
    }

    /// Gives back all that holds records, the last one on the calling thread; whether there was one.
    pub(crate) fn flush(&self) -> bool {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join(); // a client that panics there has said so
        }
        let mut current = lock(&self.current);
        let last = current.take();
        if let Some(buffer) = &last {
            self.give_back(buffer);
        }
        last.is_some()
    }

    /// The next record of a buffer that was given back: its address.
    pub(crate) fn next(&self, address: usize, valid: usize) -> Outcome<usize> {
        let readable = lock(&self.readable).get(&address).copied();
        // The vendor's would read anything.
        let readable = readable.ok_or(MSPTI_ERROR_INVALID_PARAMETER)?;
        let place = PLACE.get();
        if place >= valid {
            PLACE.set(0);
            return Err(MSPTI_ERROR_MAX_LIMIT_REACHED);
        }
        if place + size_of::<msptiActivityKind>() > readable {
            return Err(MSPTI_ERROR_INVALID_PARAMETER);
        }
        let record: *const u8 = std::ptr::with_exposed_provenance(address + place);
        // SAFETY: a record was written there, and the client keeps the buffer while it reads it.
        let front = unsafe { record.cast::<[u8; 4]>().read_unaligned() };
        let bytes = match mspti::kind(&front) {
            Some(MSPTI_ACTIVITY_KIND_KERNEL) => size_of::<msptiActivityKernel>(),
            Some(MSPTI_ACTIVITY_KIND_COMMUNICATION) => size_of::<msptiActivityCommunication>(),
            _ => return Err(MSPTI_ERROR_INVALID_KIND),
        };
        if place + bytes > readable {
            return Err(MSPTI_ERROR_INVALID_PARAMETER);
        }
        PLACE.set(place + bytes);
        Ok(address + place)
    }
}

impl Buffer {
    fn is_nearly_full(&self) -> bool {
        self.valid >= self.size / 5 * 4
    }

    /// Writes a record, if there is room.
    fn write<R: Copy>(&mut self, record: &R) {
        if size_of_val(record) > self.size - self.valid {
            return;
        }
        let place: *mut R = std::ptr::with_exposed_provenance_mut(self.address + self.valid);
        // SAFETY: the client gave `size` bytes there, which are this library's until they are given back.
        unsafe { place.write_unaligned(*record) };
        self.valid += size_of_val(record);
    }
}
