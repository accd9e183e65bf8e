//! The client's side of MSPTI: requests for buffers, the buffer that is being filled, and the returned buffers that the client may read.

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
    /// Position of the calling thread in the buffer that it is reading.
    static POSITION: Cell<usize> = const { Cell::new(0) };
}

/// The client's callbacks and buffers.
#[derive(Default)]
pub(crate) struct Client {
    callbacks: Mutex<Callbacks>,
    current: Mutex<Option<Buffer>>,
    /// Addresses of the buffers that the client may read, with the number of bytes of records.
    readable: Mutex<HashMap<usize, usize>>,
    /// The threads that return full buffers.
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
    /// Sets the callbacks. They replace the callbacks of another client.
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

    /// Writes a record to the current buffer if there is room, and requests a buffer if there is none.
    pub(crate) fn write<R: Copy>(&'static self, record: &R) {
        let mut current = lock(&self.current);
        if current.as_ref().is_some_and(Buffer::is_nearly_full)
            && let Some(full) = current.take()
        {
            self.return_on_thread(full);
        }
        current.get_or_insert_with(|| self.request()).write(record);
    }

    fn request(&self) -> Buffer {
        let callbacks = *lock(&self.callbacks);
        let (mut buffer, mut size, mut records) = (std::ptr::null_mut(), 0, 0);
        if let Some(requested) = callbacks.requested {
            // SAFETY: a function of the client; all three values are writable during the call.
            unsafe { requested(&raw mut buffer, &raw mut size, &raw mut records) };
        }
        if buffer.is_null() {
            refuse(
                "the MSPTI client returned no buffer: the vendor's library would start a thread for each record",
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

    fn return_on_thread(&'static self, buffer: Buffer) {
        let thread = thread::Builder::new().name("sim-mspti-full".to_owned());
        let started = thread.spawn(move || self.return_buffer(&buffer));
        if let Ok(handle) = started {
            let mut threads = lock(&self.threads);
            threads.retain(|thread| !thread.is_finished());
            threads.push(handle);
        }
    }

    fn return_buffer(&self, buffer: &Buffer) {
        lock(&self.readable).insert(buffer.address, buffer.valid);
        let callbacks = *lock(&self.callbacks);
        if let Some(completed) = callbacks.completed {
            let address = std::ptr::with_exposed_provenance_mut(buffer.address);
            // SAFETY: a function of the client, with a buffer from a client.
            unsafe { completed(address, buffer.size, buffer.valid) };
        }
    }

    /// Returns all buffers with records to the client, the current one on the calling thread. Returns true if there was a current buffer.
    pub(crate) fn flush(&self) -> bool {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join(); // if the client panicked there, the panic was already printed
        }
        let mut current = lock(&self.current);
        let last = current.take();
        if let Some(buffer) = &last {
            self.return_buffer(buffer);
        }
        last.is_some()
    }

    /// Returns the address of the next record in a returned buffer.
    pub(crate) fn next(&self, address: usize, valid: usize) -> Outcome<usize> {
        let returned = lock(&self.readable).get(&address).copied();
        // The vendor's library would read any address.
        let readable = returned.ok_or(MSPTI_ERROR_INVALID_PARAMETER)?;
        let position = POSITION.get();
        if position >= valid {
            POSITION.set(0);
            return Err(MSPTI_ERROR_MAX_LIMIT_REACHED);
        }
        if position + size_of::<msptiActivityKind>() > readable {
            return Err(MSPTI_ERROR_INVALID_PARAMETER);
        }
        let record: *const u8 = std::ptr::with_exposed_provenance(address + position);
        // SAFETY: a record was written there, and the client keeps the buffer while it reads it.
        let kind_bytes = unsafe { record.cast::<[u8; 4]>().read_unaligned() };
        let bytes = match mspti::kind(&kind_bytes) {
            Some(MSPTI_ACTIVITY_KIND_KERNEL) => size_of::<msptiActivityKernel>(),
            Some(MSPTI_ACTIVITY_KIND_COMMUNICATION) => size_of::<msptiActivityCommunication>(),
            _ => return Err(MSPTI_ERROR_INVALID_KIND),
        };
        if position + bytes > readable {
            return Err(MSPTI_ERROR_INVALID_PARAMETER);
        }
        POSITION.set(position + bytes);
        Ok(address + position)
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
        let end: *mut R = std::ptr::with_exposed_provenance_mut(self.address + self.valid);
        // SAFETY: the client provided `size` bytes, which belong to this library until it returns them.
        unsafe { end.write_unaligned(*record) };
        self.valid += size_of_val(record);
    }
}
