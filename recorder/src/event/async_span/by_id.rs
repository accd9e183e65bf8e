//! Async spans by id: for callers that can hold no value that ends when it is dropped, as in C.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AsyncSpan;
use crate::format::Level;
use crate::format::loss::Cause;
use crate::process::state as process;
use crate::sys::wait;
use crate::text::value::{Args, Value};

/// Async spans of one process that may be open at a time: a host that forgets to end them shall not grow without end.
const MAX_OPEN: usize = 1 << 16;

/// An async span as a number, good on every thread of the process that began it. One that is not of an open span is refused: to end a span twice
/// or in the child of a fork does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsyncSpanId(u64);

/// The async spans of a process that were begun by id. Belongs to the process, as its lock does: the child of a fork has one of its own.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Places>);

/// Places for spans, taken in turn.
#[derive(Debug, Default)]
struct Places {
    /// Each with the id that it is open under.
    all: Vec<(u64, Option<AsyncSpan>)>,
    free: Vec<usize>,
}

impl Places {
    fn find(&mut self, id: u64) -> Option<(usize, &mut Option<AsyncSpan>)> {
        let at = usize::try_from(id % MAX_OPEN as u64).ok()?;
        let place = self.all.get_mut(at).filter(|place| place.0 == id)?;
        Some((at, &mut place.1))
    }

    /// A free place; to give it back needs no memory.
    fn take_free(&mut self) -> Result<usize, Cause> {
        if let Some(at) = self.free.pop() {
            return Ok(at);
        }
        let at = self.all.len();
        if at >= MAX_OPEN {
            return Err(Cause::TooManyOpen);
        }
        let room = self.all.try_reserve(1);
        let room = room.and_then(|()| self.free.try_reserve(at + 1));
        room.map_err(|_| Cause::OutOfMemory)?;
        self.all.push((0, None));
        Ok(at)
    }
}

impl Held {
    /// Keeps a span under a new id; gives it back if there is no room.
    fn add(&self, span: AsyncSpan) -> Result<u64, (AsyncSpan, Cause)> {
        // Goes on in the child of a fork, so that its ids are none of its parent's.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let Some(mut places) = wait::lock(&self.0) else {
            return Err((span, Cause::Busy));
        };
        let at = match places.take_free() {
            Ok(at) => at,
            Err(cause) => return Err((span, cause)),
        };
        let id = NEXT.fetch_add(1, Ordering::Relaxed) * MAX_OPEN as u64 + at as u64;
        if let Some(place) = places.all.get_mut(at) {
            *place = (id, Some(span));
        }
        Ok(id)
    }

    fn take(&self, id: u64) -> Option<AsyncSpan> {
        let mut places = wait::lock(&self.0)?;
        let (at, place) = places.find(id)?;
        let span = place.take()?;
        places.free.push(at);
        Some(span)
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
            && let Some((_, Some(span))) = open.find(self.0)
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
