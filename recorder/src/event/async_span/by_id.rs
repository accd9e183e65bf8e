//! Async spans by id, for callers that cannot hold a value that ends the span when it is dropped,
//! such as C code.

use super::AsyncSpan;
use crate::process::async_ids::OpenAsync;
use crate::process::reclaim::{self, ProcessRef};
use crate::text::value::{self, Args, Value};
use sa_format::Level;
use sa_format::loss::Cause;

/// An async span as a number, valid on every thread of the process that began it. A number that
/// does not belong to an open span is ignored: ending a span twice, or in the child of a fork, does
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsyncSpanId(u64);

impl AsyncSpanId {
    /// The id of no span. Calls with it do nothing.
    pub const NONE: AsyncSpanId = AsyncSpanId(0);

    /// Begins an async span that [`AsyncSpanId::end`] ends. Returns [`AsyncSpanId::NONE`] if it is
    /// not recorded.
    pub fn begin(level: Level, category: &str, name: &str) -> AsyncSpanId {
        let mut span = AsyncSpan::open_named(level, category, name);
        // A recording that has ended meanwhile has reported the span as unfinished.
        let process = span.0.and_then(|open| open.process());
        let (Some(open), Some(process)) = (span.0, process) else {
            return AsyncSpanId::NONE;
        };
        match process.async_ids.add(open) {
            Ok(id) => {
                span.0 = None; // the id now owns the span
                AsyncSpanId(id)
            }
            Err(cause) => {
                span.abandon(cause);
                AsyncSpanId::NONE
            }
        }
    }

    /// Returns the id for a number from [`AsyncSpanId::number`], for callers such as C code.
    pub const fn from_number(number: u64) -> AsyncSpanId {
        AsyncSpanId(number)
    }

    /// Returns the id as a number, for callers such as C code; 0 for [`AsyncSpanId::NONE`].
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns true unless this is [`AsyncSpanId::NONE`]. The span was recorded when it began, but
    /// may have ended.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Adds an argument to the span. This is possible until the span ends.
    pub fn arg(self, key: &str, value: impl Value) {
        self.args(&Args::new().with(key, value));
    }

    /// Adds an argument to the span. Its key was encoded by [`encode_key`](crate::encode_key).
    #[doc(hidden)]
    pub fn arg_with_encoded_key(self, key: &str, value: &impl Value) {
        self.with(|open| open.add_args(|args, first| value::push_encoded(args, first, key, value)));
    }

    /// Adds arguments to the span. This is possible until the span ends.
    pub fn args(self, args: &Args) {
        let args = args.text();
        if !args.is_empty() {
            self.with(|open| open.add_args(|text, first| value::raw_after(text, first, args)));
        }
    }

    /// Returns the recorder of this process. Returns `None` if it has none, or if this is the id of
    /// no span.
    fn process(self) -> Option<ProcessRef> {
        self.is_some().then(reclaim::existing)?
    }

    /// Calls `act` with the open span that has this id. Does nothing if no such span is open.
    fn with(self, act: impl FnOnce(&mut OpenAsync)) {
        if let Some(process) = self.process() {
            process.async_ids.with(self.0, act);
        }
    }

    /// Removes the span from the set of spans begun by id, and returns it. Returns `None` if it is
    /// not open.
    fn remove(self) -> Option<AsyncSpan> {
        let open = self.process()?.async_ids.remove(self.0)?;
        Some(AsyncSpan(Some(open)))
    }

    /// Ends the span. Does nothing if it has already ended.
    pub fn end(self) {
        drop(self.remove()); // after the lock is released, because ending writes
    }

    /// Frees a span that nobody can end, because its id cannot be stored. The span is not recorded,
    /// and counted as lost.
    pub fn abandon(self) {
        if let Some(span) = self.remove() {
            span.abandon(Cause::TooManyOpen);
        }
    }
}
