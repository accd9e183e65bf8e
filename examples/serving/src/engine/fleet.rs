//! The connections to the living workers.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use crate::protocol::{self, Step};

/// The living workers.
#[derive(Debug)]
pub(crate) struct Fleet {
    workers: BTreeMap<usize, UnixStream>,
    /// Number of workers that have not joined yet.
    missing: usize,
}

impl Fleet {
    /// Creates a fleet that waits for `expected` workers.
    pub(crate) fn new(expected: usize) -> Fleet {
        Fleet {
            workers: BTreeMap::new(),
            missing: expected,
        }
    }

    pub(crate) fn join(&mut self, worker: usize, stream: UnixStream) {
        self.workers.insert(worker, stream);
        self.missing = self.missing.saturating_sub(1);
    }

    pub(crate) fn remove(&mut self, worker: usize) {
        self.workers.remove(&worker);
    }

    /// Returns true if every worker has joined. Some may have died since.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Returns true if every worker has joined and all have died.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_complete() && self.workers.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Returns true if `test` returns true for every living worker.
    pub(crate) fn all(&self, test: impl FnMut(usize) -> bool) -> bool {
        self.workers.keys().copied().all(test)
    }

    /// Sends each living worker its step. `step` gets the worker's rank and the number of living workers.
    pub(crate) fn send(&mut self, step: impl Fn(usize, usize) -> Step) {
        let world = self.workers.len();
        for (rank, stream) in self.workers.values_mut().enumerate() {
            // The reader of the connection reports if the worker is dead.
            let _ = protocol::send(stream, &step(rank, world));
        }
    }
}
