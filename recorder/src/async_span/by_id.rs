//! Async spans by id: for callers that can hold no value that ends when it is dropped, as in C.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AsyncSpan;
use crate::config::Level;
use crate::loss::Cause;
use crate::process;
use crate::value::{Args, Value};
use crate::wait;

/// Async spans of one process that may be open at a time: a host that forgets to end them shall not grow without end.
const MAX_OPEN: usize = 1 << 16;

/// An async span as a number, good on every thread of the process that began it. One that is not of an open span is refused: to end a span twice
/// or in the child of a fork does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsyncSpanId(u64);

/// The async spans of a process that were begun by id. Belongs to the process, as its lock does: the child of a fork has one of its own.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<BTreeMap<u64, AsyncSpan>>);

impl Held {
    /// Keeps a span under a new id; gives it back if there is no room.
    fn add(&self, span: AsyncSpan) -> Result<u64, (AsyncSpan, Cause)> {
        // Goes on in the child of a fork, so that its ids are none of its parent's.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let Some(mut open) = wait::lock(&self.0) else {
            return Err((span, Cause::Busy));
        };
        if open.len() >= MAX_OPEN {
            return Err((span, Cause::TooManyOpen));
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        open.insert(id, span);
        Ok(id)
    }

    fn take(&self, id: u64) -> Option<AsyncSpan> {
        wait::lock(&self.0)?.remove(&id)
    }
}

impl AsyncSpanId {
    /// The id of no span: all calls with it do nothing.
    pub const NONE: AsyncSpanId = AsyncSpanId(0);

    /// Begins an async span; [`AsyncSpanId::NONE`] if it is not recorded.
    pub fn begin(level: Level, category: &str, name: &str) -> AsyncSpanId {
        let span = AsyncSpan::open_named(level, category, name);
        let Some(open) = &span.0 else {
            return AsyncSpanId::NONE;
        };
        // A recording that was ended meanwhile has told it as unfinished.
        let Some(process) = open.process() else {
            return AsyncSpanId::NONE;
        };
        match process.held_async.add(span) {
            Ok(id) => AsyncSpanId(id),
            Err((span, cause)) => {
                span.abandon(cause);
                AsyncSpanId::NONE
            }
        }
    }

    /// Takes the number that [`AsyncSpanId::number`] gave.
    pub const fn of_number(number: u64) -> AsyncSpanId {
        AsyncSpanId(number)
    }

    /// The id as a number, 0 for none.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Whether this is the id of a span that was recorded when it began.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Adds an argument.
    pub fn arg(self, key: &str, value: impl Value) {
        self.args(&Args::new().with(key, value));
    }

    /// Adds an argument whose key is JSON text of [`key_text`](crate::key_text).
    #[doc(hidden)]
    pub fn known_arg(self, key: &str, value: &impl Value) {
        self.with(|span| span.known_arg(key, value));
    }

    /// Adds arguments.
    pub fn args(self, args: &Args) {
        if !args.text().is_empty() {
            self.with(|span| span.args(args));
        }
    }

    fn with(self, act: impl FnOnce(&mut AsyncSpan)) {
        if !self.is_some() {
            return;
        }
        let process = process::existing();
        let held = process.as_deref().map(|process| &process.held_async);
        if let Some(mut open) = held.and_then(|held| wait::lock(&held.0))
            && let Some(span) = open.get_mut(&self.0)
        {
            act(span);
        }
    }

    /// Ends the span.
    pub fn end(self) {
        if self.is_some()
            && let Some(process) = process::existing()
        {
            drop(process.held_async.take(self.0)); // after the lock: ending writes
        }
    }

    /// Takes the span back that its caller has no room to remember: it is not recorded, and counted as lost.
    pub fn abandon(self) {
        if self.is_some()
            && let Some(process) = process::existing()
            && let Some(span) = process.held_async.take(self.0)
        {
            span.abandon(Cause::TooManyOpen);
        }
    }
}
