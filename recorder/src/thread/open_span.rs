//! The open spans of a thread that are kept for callers without guards.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::text::site::Site;
use crate::thread::thread_state::ThreadState;

/// A range of the text in which a thread's writer keeps the names and args of open spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u32,
    pub(crate) len: u32,
}

impl Piece {
    /// Returns the range of `text` from byte `from` to the end.
    #[inline(always)]
    pub(crate) fn from(from: usize, text: &[u8]) -> Piece {
        Piece {
            from: u32::try_from(from).unwrap_or(u32::MAX),
            len: u32::try_from(text.len() - from).unwrap_or(0),
        }
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.from as usize..self.from as usize + self.len as usize
    }
}

/// State of an open span on its own thread.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    pub(crate) thread: &'static ThreadState,
    /// Recording in which the span began. It can only end in that one.
    pub(crate) epoch: u32,
    pub(crate) site: Option<&'static Site>,
    pub(crate) start_ns: u64,
    pub(crate) cpu_start_ns: u64,
    pub(crate) depth: u32,
    /// Name and category if the span has no site.
    pub(crate) name: Piece,
    pub(crate) args: Piece,
}

/// The spans of a thread that were begun by id.
#[derive(Debug)]
pub(crate) struct SpanIds {
    next: u64,
    /// Ids and spans in the order in which they began.
    pub(crate) open: Vec<(u64, OpenSpan)>,
}

impl SpanIds {
    /// Creates an empty set of open spans. No two threads have the same ids. Those of a forked
    /// child also differ from its parent's, because the child continues the count.
    pub(crate) fn new() -> SpanIds {
        static THREADS: AtomicU64 = AtomicU64::new(1);
        SpanIds {
            next: THREADS.fetch_add(1, Ordering::Relaxed) << 32,
            open: Vec::new(),
        }
    }

    /// Returns the index in `open` of the span with this id, or `None` if no such span is open.
    /// Searches from the end, because the last span is the most likely one.
    #[inline]
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        self.open.iter().rposition(|(open, _)| *open == id)
    }

    /// Removes and returns the span with this id, or returns `None` if no such span is open. Tries
    /// the last span first, because it is the most likely one.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<OpenSpan> {
        let last = self.open.pop_if(|(last, _)| *last == id);
        let removed = last.or_else(|| Some(self.open.remove(self.position(id)?)));
        removed.map(|(_, open)| open)
    }

    /// Adds an open span and returns its new id.
    #[inline(always)] // otherwise the span is copied while its stores are in flight, which stalls
    pub(crate) fn add(&mut self, open: OpenSpan) -> u64 {
        let id = self.next;
        // A thread's ids repeat after 2^32 spans. By then no caller holds the first ones.
        self.next = id & !u64::from(u32::MAX) | (id + 1) & u64::from(u32::MAX);
        self.open.push((id, open));
        id
    }
}
