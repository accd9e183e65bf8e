//! A launch whose kernels are looked for among MSPTI's records: they ran between the two events of its pair.
//!
//! Events and records both have the device's time: the events as it is, the records with an offset, which MSPTI changes every few seconds. Each record
//! between the events bounds the offset.

use crate::clock::DeviceClock;
use crate::description::Kind;
use crate::graphs::RecordCount;
use crate::mspti::Kernel;
use crate::pending::Launched;
use crate::place::Placed;
use crate::runtime::Bounds;
use crate::tally::{Fate, Tally};
use crate::track::{EVENT_PAIR, write_slice};
use sa_recorder::{Track, host, now_ns};
use std::sync::Arc;

/// The search for the kernels of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    /// Times of the device between which the launch has run.
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// The stream of the launch.
    pub(super) stream: u32,
    /// Name of the kernel, if the launch is a single kernel.
    pub(super) name: Option<Arc<str>>,
    /// The graph that was replayed, if the launch is a replay.
    pub(super) graph: Option<usize>,
    /// Number of records, if the capture determines it.
    pub(super) expected: Option<usize>,
    /// Least number of records.
    pub(super) at_least: RecordCount,
    /// True if there may be records of collectives.
    pub(super) has_collectives: bool,
    /// The offset, if MSPTI's clock is right.
    pub(super) prior_ns: i64,
}

impl Search {
    /// Returns the bounds of the offset if a kernel belongs to the launch.
    pub(super) fn offset(&self, kernel: &Kernel) -> Bounds {
        Bounds::new(kernel.end_ns - self.end_ns, kernel.start_ns - self.start_ns)
    }

    /// Returns the bounds of the offset if several kernels do.
    pub(super) fn offset_of<'a>(&self, kernels: impl Iterator<Item = &'a Kernel>) -> Bounds {
        let all = Bounds::new(i64::MIN, i64::MAX);
        kernels.fold(all, |offset, kernel| offset.and(self.offset(kernel)))
    }
}

/// A launch whose kernels are looked for.
#[derive(Debug)]
pub(crate) struct Bracket {
    pub(super) search: Search,
    pub(super) clock: DeviceClock,
    pub(super) shown: Shown,
    /// True if the slice of the pair was not written: the record takes its place.
    pub(super) waits: bool,
    /// True if the records of its graph were learned from it, too.
    pub(super) has_taught: bool,
    added_ns: u64,
}

/// A launch, and its place by its pair.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) launched: Launched,
    pub(crate) placed: Placed,
    /// Its row, which has room for the slice of the pair.
    pub(crate) track: Track,
}

impl Bracket {
    /// Makes the bracket of a launch that ran `between` these times of the device.
    pub(crate) fn new(shown: Shown, between: Bounds, clock: DeviceClock) -> Bracket {
        let launched = &shown.launched;
        let is_plain = launched.description.kind == Kind::Kernel;
        let kernels = launched.kernels.as_ref();
        let exact = kernels.and_then(|one| usize::try_from(one.exact_count()?).ok());
        let graph = kernels.map_or(0, |one| Arc::as_ptr(one).addr());
        let anchor = host::anchor();
        let ahead_ns = anchor.realtime_ns.cast_signed() - anchor.monotonic_ns.cast_signed();
        Bracket {
            search: Search {
                start_ns: between.low_ns,
                end_ns: between.high_ns,
                stream: launched.stream_id.cast_unsigned(),
                name: is_plain.then(|| launched.description.name.shown.as_ref().into()),
                graph: (!is_plain).then_some(graph),
                expected: if is_plain { Some(1) } else { exact },
                at_least: launched.expected.unwrap_or_default(),
                has_collectives: kernels.is_some_and(|one| one.has_collectives),
                prior_ns: shown.placed.start_ns.cast_signed() + ahead_ns - between.low_ns,
            },
            clock,
            waits: is_plain,
            has_taught: false,
            shown,
            added_ns: now_ns(),
        }
    }

    /// Returns the stream of a replay and the device's times between which it ran, if it is one.
    pub(super) fn replay(&self) -> Option<(u32, Bounds)> {
        let between = Bounds::new(self.search.start_ns, self.search.end_ns);
        self.search.graph.map(|_| (self.search.stream, between))
    }

    /// Returns a host time at which it had surely ended.
    pub(super) fn end_ns(&self) -> u64 {
        let placed = &self.shown.placed;
        placed.start_ns + placed.dur_ns + placed.uncertainty_ns
    }

    pub(super) fn is_older(&self, now_ns: u64, than_ns: u64) -> bool {
        now_ns.saturating_sub(self.added_ns) > than_ns
    }
}

impl Shown {
    /// Writes the slice of the pair. Then the launch is no longer under way.
    pub(crate) fn write_pair(&self, tally: &Tally) {
        self.write(tally, &self.placed, EVENT_PAIR);
    }

    /// Writes its slice at this place. Then the launch is no longer under way.
    pub(super) fn write(&self, tally: &Tally, placed: &Placed, method: &str) {
        write_slice(self.track, &self.launched, placed, method);
        tally.end_launch(Fate::Timed);
    }
}
