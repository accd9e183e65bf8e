//! Buffers for encoded args: one per thread, so that a call that only encodes them allocates nothing.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::value;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum capacity of a buffer that is reused.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// An empty buffer for the duration of one call. A nested call gets its own buffer.
pub(crate) struct Scratch(pub(crate) Vec<u8>);

impl Scratch {
    pub(crate) fn empty() -> Scratch {
        Scratch(BUFFER.try_with(Cell::take).unwrap_or_default())
    }

    /// Encodes a dict of keywords as args, in an empty buffer of the calling thread.
    pub(crate) fn encode(args: Option<&Bound<'_, PyDict>>) -> Scratch {
        let mut text = Scratch::empty();
        if let Some(args) = args {
            value::push_all(&mut text.0, args);
        }
        text
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.0);
        if buffer.capacity() <= MAX_KEPT_BYTES {
            buffer.clear();
            let _ = BUFFER.try_with(|cell| cell.set(buffer)); // fails if the thread is ending
        }
    }
}
