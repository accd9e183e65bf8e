//! The workers that are alive, and how a step reaches them.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use crate::protocol::{self, Step};

/// The connections to the workers.
#[derive(Debug)]
pub(crate) struct Fleet {
    workers: BTreeMap<usize, UnixStream>,
    /// Workers that have not joined yet.
    missing: usize,
}

impl Fleet {
    /// A fleet that waits for `expected` workers.
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

    /// Whether every worker has joined (and perhaps died since).
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Whether every worker has joined and none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_complete() && self.workers.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Whether `test` holds for every living worker.
    pub(crate) fn all(&self, test: impl FnMut(usize) -> bool) -> bool {
        self.workers.keys().copied().all(test)
    }

    /// Sends each living worker its step, made from its rank and the number of workers.
    pub(crate) fn send(&mut self, step: impl Fn(usize, usize) -> Step) {
        let world = self.workers.len();
        for (rank, stream) in self.workers.values_mut().enumerate() {
            // A dead worker shows as the end of its connection; its reader reports that.
            let _ = protocol::send(stream, &step(rank, world));
        }
    }
}
