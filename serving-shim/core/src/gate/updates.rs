//! Streams in which a graph is being updated: what is launched there changes the graph's kernels and runs nothing, and an event is refused.

use crate::runtime::Stream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The streams.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    any: AtomicBool,
    streams: Mutex<Vec<Stream>>,
}

impl Updates {
    /// An update is about to begin in a stream.
    pub(crate) fn begin(&self, stream: Stream) {
        self.change(|streams| streams.push(stream));
    }

    /// It has ended, or has not begun; also a stream that is gone.
    pub(crate) fn end(&self, stream: Stream) {
        if self.any.load(Ordering::Acquire) {
            self.change(|streams| {
                // The last one that began: another one that is refused meanwhile ends none but itself.
                if let Some(at) = streams.iter().rposition(|one| *one == stream) {
                    streams.remove(at);
                }
            });
        }
    }

    /// Forgets a stream.
    pub(crate) fn forget(&self, stream: Stream) {
        if self.any.load(Ordering::Acquire) {
            self.change(|streams| streams.retain(|one| *one != stream));
        }
    }

    /// Whether what is launched into a stream updates a graph.
    pub(crate) fn has(&self, stream: Stream) -> bool {
        self.any.load(Ordering::Acquire) && self.change(|streams| streams.contains(&stream))
    }

    /// Does something while nobody else can look.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        self.change(|_| act());
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Stream>) -> T) -> T {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut streams);
        self.any.store(!streams.is_empty(), Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_updates_between_begin_and_end() {
        let (updates, stream) = (Updates::default(), Stream(1));
        assert!(!updates.has(stream));
        updates.begin(stream);
        assert!(updates.has(stream) && !updates.has(Stream(2)));
        updates.begin(stream); // is refused
        updates.end(stream);
        assert!(updates.has(stream));
        updates.end(stream);
        updates.end(stream);
        assert!(!updates.has(stream));
        updates.begin(stream);
        updates.forget(stream);
        assert!(!updates.has(stream));
    }
}
