//! The async spans of a process that were begun by id.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::wait;
use sa_format::loss::Cause;

/// Maximum number of open async spans of one process. A host that forgets to end them must not use
/// memory without limit.
const MAX_OPEN: usize = 1 << 16;

/// An open async span. It is small enough to be passed in registers. Its other data is stored with
/// its lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAsync {
    /// Recording in which the span began. In another recording, and in the child of a fork, the
    /// span does nothing.
    pub(crate) epoch: NonZeroU32,
    /// The span's lane, with flags in the upper bits.
    pub(crate) lane: u32,
    pub(crate) start_ns: u64,
}

/// The async spans of a process that were begun by id. It belongs to the process, as its lock does:
/// the child of a fork has its own.
#[derive(Debug, Default)]
pub(crate) struct AsyncIds(Mutex<Places>);

/// Places for spans, which are reused.
#[derive(Debug, Default)]
struct Places {
    /// Each span with the id under which it is open.
    all: Vec<(u64, Option<OpenAsync>)>,
    free: Vec<usize>,
}

impl Places {
    fn find(&mut self, id: u64) -> Option<(usize, &mut Option<OpenAsync>)> {
        let at = usize::try_from(id % MAX_OPEN as u64).ok()?;
        let place = self.all.get_mut(at).filter(|place| place.0 == id)?;
        Some((at, &mut place.1))
    }

    /// Returns the index of a free place for a span, or the cause if there is none. Freeing the
    /// place later needs no memory.
    fn allocate(&mut self) -> Result<usize, Cause> {
        if let Some(at) = self.free.pop() {
            return Ok(at);
        }
        let at = self.all.len();
        if at >= MAX_OPEN {
            return Err(Cause::TooManyOpen);
        }
        let room = self
            .all
            .try_reserve(1)
            .and_then(|()| self.free.try_reserve(at + 1));
        room.map_err(|_| Cause::OutOfMemory)?;
        self.all.push((0, None));
        Ok(at)
    }
}

impl AsyncIds {
    /// Stores an open async span and returns a new id, by which the host ends it later.
    ///
    /// # Errors
    ///
    /// Returns the cause if there is no room for it.
    pub(crate) fn add(&self, span: OpenAsync) -> Result<u64, Cause> {
        // The count continues in the child of a fork, so that none of its ids is one of its
        // parent's.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut places = wait::lock(&self.0).ok_or(Cause::Busy)?;
        let at = places.allocate()?;
        let id = NEXT.fetch_add(1, Ordering::Relaxed) * MAX_OPEN as u64 + at as u64;
        if let Some(place) = places.all.get_mut(at) {
            *place = (id, Some(span));
        }
        Ok(id)
    }

    pub(crate) fn remove(&self, id: u64) -> Option<OpenAsync> {
        let mut places = wait::lock(&self.0)?;
        let (at, place) = places.find(id)?;
        let span = place.take()?;
        places.free.push(at);
        Some(span)
    }

    /// Calls `act` with the open span of this id. Does nothing if there is no such span.
    pub(crate) fn with(&self, id: u64, act: impl FnOnce(&mut OpenAsync)) {
        if let Some(mut places) = wait::lock(&self.0)
            && let Some((_, Some(span))) = places.find(id)
        {
            act(span);
        }
    }
}
