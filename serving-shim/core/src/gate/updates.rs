//! Streams in which a graph is being updated: what is launched there changes the graph's kernels and runs nothing, and an event is refused.

use crate::runtime::{Context, Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// An update under way.
#[derive(Clone, Copy, Debug)]
struct Update {
    stream: Stream,
    context: Option<Context>,
}

/// Those under way.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    any: AtomicBool,
    updates: Mutex<Vec<Update>>,
}

impl Updates {
    /// An update is about to begin in a stream.
    pub(crate) fn begin(&self, stream: Stream, context: Option<Context>) {
        self.change(|updates| updates.push(Update { stream, context }));
    }

    /// It has ended, or has not begun; also a stream that is gone.
    pub(crate) fn end(&self, stream: Stream) {
        if self.any.load(Ordering::Acquire) {
            self.change(|updates| {
                // The last one that began: another one that is refused meanwhile ends none but itself.
                if let Some(at) = updates.iter().rposition(|one| one.stream == stream) {
                    updates.remove(at);
                }
            });
        }
    }

    /// Forgets a stream.
    pub(crate) fn forget(&self, stream: Stream) {
        self.keep(|update| update.stream != stream);
    }

    /// Forgets the streams of a context.
    pub(crate) fn forget_context(&self, context: Option<Context>) {
        self.keep(|update| update.context != context);
    }

    /// Forgets all.
    pub(crate) fn forget_all(&self) {
        self.keep(|_| false);
    }

    fn keep(&self, stays: impl Fn(&Update) -> bool) {
        if self.any.load(Ordering::Acquire) {
            self.change(|updates| updates.retain(stays));
        }
    }

    /// Whether what is launched into a stream updates a graph.
    pub(crate) fn has(&self, stream: Stream) -> bool {
        self.any.load(Ordering::Acquire)
            && self.change(|updates| updates.iter().any(|update| update.stream == stream))
    }

    /// Does something while nobody else can look.
    #[cfg(test)]
    pub(crate) fn hold(&self, act: impl FnOnce()) {
        self.change(|_| act());
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Update>) -> T) -> T {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut updates);
        self.any.store(!updates.is_empty(), Ordering::Release);
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
        updates.begin(stream, None);
        assert!(updates.has(stream) && !updates.has(Stream(2)));
        updates.begin(stream, None); // is refused
        updates.end(stream);
        assert!(updates.has(stream));
        updates.end(stream);
        updates.end(stream);
        assert!(!updates.has(stream));
        updates.begin(stream, None);
        updates.forget(stream);
        assert!(!updates.has(stream));
    }

    #[test]
    fn what_goes_takes_its_updates_with_it() {
        let updates = Updates::default();
        let begin = |stream| updates.begin(Stream(stream), Some(Context(stream)));
        let under_way = || [1, 2].map(|stream| updates.has(Stream(stream)));
        begin(1);
        begin(2);
        updates.forget_context(Some(Context(1)));
        assert_eq!(under_way(), [false, true]);
        updates.forget_all();
        assert_eq!(under_way(), [false, false]);
    }
}
