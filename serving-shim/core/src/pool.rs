//! The event pairs of a device, which are created when needed and reused, up to a limit. Also the state of the device.

use crate::lock::lock;
use crate::place::Times;
use crate::runtime::ascend::{Runtime, is_lost};
use crate::runtime::{Code, Event};
use crate::tally::{Fate, write_instant};
use ascend_sys::codes;
use sa_recorder::Args;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// Maximum number of pairs of a device: launches that may be timed before the first of them has ended.
const MAX_PAIRS: usize = 4096;

/// State of a device that can be used.
const OPEN: u8 = 0;
/// It was reset; the program may set it again.
const RESET: u8 = 1;
/// A call failed after which none can succeed.
const LOST: u8 = 2;

/// Two events around a launch, with their last times, so that a record that did nothing is noticed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) start: Event,
    pub(crate) end: Event,
    last_start_ns: Option<i64>,
    last_end_ns: Option<i64>,
}

impl Pair {
    /// Returns true if both events of this pair have later times than at the last use. Otherwise recording them did nothing, as in a stream that is being
    /// captured.
    pub(crate) fn has_new_times(&mut self, times: &Times) -> bool {
        let newer = |last: Option<i64>, now: i64| last.is_none_or(|last| now > last);
        let (start, end) = (times.start.low_ns, times.end.low_ns);
        let took = newer(self.last_start_ns, start) && newer(self.last_end_ns, end);
        (self.last_start_ns, self.last_end_ns) = (Some(start), Some(end));
        took
    }
}

/// The pairs of a device, and its state.
#[derive(Debug)]
pub(crate) struct Pool {
    runtime: &'static Runtime,
    /// The program's number of the device.
    pub(crate) user: i32,
    state: AtomicU8,
    pairs: Mutex<Pairs>,
}

#[derive(Debug, Default)]
struct Pairs {
    free: Vec<Pair>,
    /// Number of pairs that exist, free or not.
    made: usize,
}

impl Pool {
    pub(crate) fn new(runtime: &'static Runtime, user: i32) -> Pool {
        Pool {
            runtime,
            user,
            state: AtomicU8::new(OPEN),
            pairs: Mutex::default(),
        }
    }

    /// Returns true if nothing can be timed on the device, because it is lost. A device that was reset opens again with the next launch, because the program
    /// had to set it first.
    pub(crate) fn is_closed(&self) -> bool {
        if self.state.load(Ordering::Acquire) == RESET {
            let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = self.state.compare_exchange(RESET, OPEN, order, failed);
        }
        self.is_lost()
    }

    /// Returns true if no call of the runtime for this device can succeed any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOST
    }

    /// Marks the device as lost, so that the runtime is not called for it any more.
    pub(crate) fn lose(&self) {
        self.state.store(LOST, Ordering::Release);
    }

    /// Checks the code of a failed call of the runtime, which may mean that the device is lost, and records that.
    pub(crate) fn notice(&self, code: Code) {
        if is_lost(code) && self.state.swap(LOST, Ordering::AcqRel) != LOST {
            let name = codes::name_of(code).unwrap_or("unknown");
            let args = Args::new().with("device", self.user).with("code", code);
            write_instant("device_lost", &args.with("error", name));
        }
    }

    /// Returns a free event pair for a launch: the one that was released last, so that few pairs are in use, or a new one. Returns the reason if there is
    /// none.
    pub(crate) fn acquire(&self) -> Result<Pair, Fate> {
        let mut pairs = lock(&self.pairs);
        if let Some(pair) = pairs.free.pop() {
            return Ok(pair);
        }
        if pairs.made >= MAX_PAIRS {
            return Err(Fate::NoPair);
        }
        pairs.made += 1;
        drop(pairs);
        self.make().map_err(|code| {
            let mut pairs = lock(&self.pairs);
            pairs.made = pairs.made.saturating_sub(1); // the pairs may have been forgotten in the meantime
            drop(pairs);
            self.notice(code);
            Fate::Refused
        })
    }

    fn make(&self) -> Result<Pair, Code> {
        let start = self.runtime.create_event()?;
        let end = self.runtime.create_event();
        Ok(Pair {
            start,
            end: end.inspect_err(|_| self.runtime.destroy_event(start))?,
            last_start_ns: None,
            last_end_ns: None,
        })
    }

    /// Makes event pairs available for further launches, because no stream will reach them any more.
    pub(crate) fn release(&self, pairs: Vec<Pair>) {
        if !pairs.is_empty() {
            lock(&self.pairs).free.extend(pairs);
        }
    }

    /// Destroys an event pair that a stream may still reach, because it would overwrite the time of a later launch.
    pub(crate) fn destroy(&self, pair: &Pair) {
        let mut pairs = lock(&self.pairs);
        pairs.made = pairs.made.saturating_sub(1);
        drop(pairs);
        self.runtime.destroy_event(pair.start);
        self.runtime.destroy_event(pair.end);
    }

    /// Destroys the free event pairs, because the device is about to be reset. The device can be used again after the program has set it.
    pub(crate) fn reset(&self) {
        let free = std::mem::take(&mut lock(&self.pairs).free);
        free.iter().for_each(|pair| self.destroy(pair));
        self.state.store(RESET, Ordering::Release);
    }

    /// Drops all event pairs without calling the runtime, because the device is lost.
    pub(crate) fn forget(&self) {
        *lock(&self.pairs) = Pairs::default();
    }
}
