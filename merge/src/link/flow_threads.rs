//! The threads on which the program draws each flow, to be looked up in the second pass.

use super::buckets::{Buckets, first_behind};
use super::records::FlowThread;
use crate::fragment::file::Content;
use crate::store::sorter::{Record, Sorted};
use std::io;

/// The keys of all pairs of a flow and a thread on which the program draws it, sorted.
pub(super) struct FlowThreads {
    stored: Stored,
    /// Positions of the keys. Without them, a search in many millions of keys would miss the processor's caches at each step.
    buckets: Buckets,
}

enum Stored {
    Memory(Vec<FlowThread>),
    Mapped(Content),
}

impl FlowThreads {
    pub(super) fn new(sorted: Sorted<FlowThread>) -> io::Result<FlowThreads> {
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

    /// Returns true if the program draws the flow of this key on its thread.
    pub(super) fn has(&self, key: u64) -> bool {
        let Some((bucket, guess)) = self.buckets.place(key) else {
            return false;
        };
        let end = bucket.end;
        let first = first_behind(bucket, guess, |at| self.get(at) < key);
        first < end && self.get(first) == key
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
                assert_eq!(threads.has(key), expected, "{key}");
            }
        }
    }
}
