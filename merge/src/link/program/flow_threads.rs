//! Keys of threads, and of the flows that the program draws on them.

use crate::link::records::OwnFlow;
use xxhash_rust::xxh3::xxh3_64;

/// Computes keys of threads, which are the same wherever a thread's events are read.
#[derive(Default)]
pub(crate) struct ThreadKeys {
    last: Option<(usize, (i64, i64))>,
    key: u64,
}

impl ThreadKeys {
    /// Returns the key of a recording's thread.
    #[inline]
    pub(crate) fn of(&mut self, recording: usize, thread: (i64, i64)) -> u64 {
        if self.last != Some((recording, thread)) {
            self.last = Some((recording, thread));
            let (pid, tid) = thread;
            let parts = [recording as u64, pid.cast_unsigned(), tid.cast_unsigned()];
            self.key = hash(parts);
        }
        self.key
    }
}

/// Returns the key of a flow on a thread.
pub(crate) fn flow_thread(flow: &OwnFlow, thread: u64) -> u64 {
    hash([flow.id, u64::from(flow.style.0), thread])
}

fn hash(parts: [u64; 3]) -> u64 {
    let mut bytes = [0; 24];
    for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    xxh3_64(&bytes)
}
