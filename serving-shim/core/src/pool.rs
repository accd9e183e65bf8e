//! Event pairs, made when needed, used again, never more than a bound.

use crate::place::Times;
use crate::runtime::{Code, DeviceRuntime, Event};
use std::sync::{Mutex, PoisonError};

/// Most pairs of a device: launches that may be timed before the first of them has ended.
pub(crate) const MAX_PAIRS: usize = 4096;

/// Two events, around a launch. Each knows the last time it took, by which a record that did nothing is noticed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) start: Event,
    pub(crate) end: Event,
    pub(crate) last_start_ns: Option<u64>,
    pub(crate) last_end_ns: Option<u64>,
}

impl Pair {
    /// Whether the events took times since the last time; else a record did nothing, as on a stream that is being captured.
    pub(crate) fn took(&mut self, times: &Times) -> bool {
        let newer = |last: Option<u64>, now: u64| last.is_none_or(|last| now > last);
        let (start, end) = (times.start.ns, times.end.ns);
        let took = newer(self.last_start_ns, start) && newer(self.last_end_ns, end);
        (self.last_start_ns, self.last_end_ns) = (Some(start), Some(end));
        took
    }
}

/// Why there is no pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPair {
    /// All are in use.
    AllInUse,
    /// The runtime makes no more.
    Refused(Code),
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Pair>,
    made: usize,
}

/// The pairs of a device.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<State>);

impl Pool {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a pair. The one given back first is taken last, so that few of them are in use.
    pub(crate) fn take(&self, runtime: &dyn DeviceRuntime) -> Result<Pair, NoPair> {
        let free = self.with(|state| match state.free.pop() {
            None if state.made >= MAX_PAIRS => Err(NoPair::AllInUse),
            None => {
                state.made += 1;
                Ok(None)
            }
            pair => Ok(pair),
        });
        match free? {
            Some(pair) => Ok(pair),
            None => make(runtime).inspect_err(|_| self.with(|state| state.made -= 1)),
        }
    }

    /// Takes pairs back that no stream will reach any more.
    pub(crate) fn give_back(&self, pairs: Vec<Pair>) {
        if !pairs.is_empty() {
            self.with(|state| state.free.extend(pairs));
        }
    }

    /// Destroys a pair that a stream may still reach: it would take the time of a launch to come.
    pub(crate) fn destroy(&self, pair: &Pair, runtime: &dyn DeviceRuntime) {
        self.with(|state| state.made = state.made.saturating_sub(1));
        runtime.destroy_event(pair.start);
        runtime.destroy_event(pair.end);
    }

    /// Destroys what is free.
    pub(crate) fn clear(&self, runtime: &dyn DeviceRuntime) {
        let free = self.with(|state| {
            state.made = state.made.saturating_sub(state.free.len());
            std::mem::take(&mut state.free)
        });
        for pair in free {
            runtime.destroy_event(pair.start);
            runtime.destroy_event(pair.end);
        }
    }

    /// Forgets all pairs, without a call: the device is gone.
    pub(crate) fn forget(&self) {
        self.with(|state| *state = State::default());
    }
}

fn make(runtime: &dyn DeviceRuntime) -> Result<Pair, NoPair> {
    let start = runtime.create_event().map_err(NoPair::Refused)?;
    let end = runtime.create_event().map_err(|code| {
        runtime.destroy_event(start);
        NoPair::Refused(code)
    })?;
    Ok(Pair {
        start,
        end,
        last_start_ns: None,
        last_end_ns: None,
    })
}
