//! Threads on which the program draws flows.

use crate::fragment::file::Content;
use crate::link::buckets::{Buckets, first_behind};
use crate::link::records::{FlowThread, OwnFlow};
use crate::store::sorter::{Record, Sorted};
use std::io;
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
pub(crate) fn flow_thread(flow: &OwnFlow, thread: u64) -> FlowThread {
    FlowThread {
        key: hash([flow.id, u64::from(flow.style.0), thread]),
    }
}

fn hash(parts: [u64; 3]) -> u64 {
    let mut bytes = [0; 24];
    for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// The keys of flows and threads, sorted: of flows that the program draws on several threads.
pub(crate) struct FlowThreads {
    stored: Stored,
    /// Positions of the keys. Without them, a search in many millions of keys would miss the processor's caches at each step.
    buckets: Buckets,
}

enum Stored {
    Memory(Vec<FlowThread>),
    Mapped(Content),
}

impl FlowThreads {
    pub(crate) fn new(sorted: Sorted<FlowThread>) -> io::Result<FlowThreads> {
        let mut buckets = Buckets::new(sorted.len(), 0);
        sorted.each(|thread| {
            buckets.count(thread.key);
            Ok(())
        })?;
        buckets.finish();
        let stored = match sorted {
            Sorted::Memory(threads) => Stored::Memory(threads),
            Sorted::File { file, .. } => Stored::Mapped(Content::open(file)?),
        };
        Ok(FlowThreads { stored, buckets })
    }

    /// Returns true if the program draws the flow on this thread.
    pub(crate) fn has(&self, wanted: FlowThread) -> bool {
        let Some((bucket, guess)) = self.buckets.place(wanted.key) else {
            return false;
        };
        let end = bucket.end;
        let first = first_behind(bucket, guess, |at| self.get(at) < wanted.key);
        first < end && self.get(first) == wanted.key
    }

    #[inline]
    fn get(&self, at: usize) -> u64 {
        match &self.stored {
            Stored::Memory(threads) => threads[at].key,
            Stored::Mapped(content) => {
                FlowThread::load(&content.bytes()[at * FlowThread::BYTES..]).key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sorter::Sorter;

    #[test]
    fn threads_are_found_by_key() {
        let folders = [std::env::temp_dir()];
        for many in [0, 200_000] {
            let mut sorter = Sorter::in_any(&folders, 1 << 16);
            // Keys are hashes, so most are in other buckets.
            let more = (0..many).map(|number| 1000 + (number << 40));
            for key in [5, 9, 5].into_iter().chain(more) {
                sorter.push(FlowThread { key }).unwrap();
            }
            let threads = FlowThreads::new(sorter.finish().unwrap()).unwrap();
            assert_eq!(matches!(threads.stored, Stored::Mapped(_)), many > 0);
            for (key, expected) in [
                (5, true),
                (6, false),
                (9, true),
                (0, false),
                (u64::MAX, false),
            ] {
                assert_eq!(threads.has(FlowThread { key }), expected, "{key}");
            }
        }
    }
}
