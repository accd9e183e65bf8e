//! A launch whose kernels are looked for: between which events it has run, and how it is shown.

use super::Sink;
use super::sought::Sought;
use crate::clock::DeviceClock;
use crate::counts::count;
use crate::description::Kind;
use crate::graphs::RecordCount;
use crate::pending::Launched;
use crate::place::Placed;
use crate::track::{Method, write_slice};
use sa_recorder::{Track, now_ns};
use std::sync::Arc;

/// A launch whose kernels are looked for.
#[derive(Debug)]
pub(crate) struct Bracket {
    pub(super) sought: Sought,
    pub(super) clock: DeviceClock,
    pub(super) shown: Shown,
    /// Where the pair is.
    pub(super) placed: Placed,
    /// The pair's slice was not written: the record takes its place.
    pub(super) waits: bool,
    /// What its graph has was learnt from it too.
    pub(super) has_taught: bool,
    added_ns: u64,
}

/// What a pair of events says of a launch.
#[derive(Debug)]
pub(crate) struct OfPair {
    pub(crate) placed: Placed,
    /// The times of the device between which it has run.
    pub(crate) between: (i64, i64),
}

/// How a launch is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) launched: Launched,
    pub(crate) flow: u64,
    /// Its row, which has room for the pair.
    pub(crate) track: Track,
}

/// A replay, and when it ran by the device's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replay {
    pub(super) between: (i64, i64),
    pub(super) stream: u32,
}

impl Bracket {
    /// The bracket of a launch that has ended; `ahead_ns` is what the wall clock is ahead of the monotonic one.
    pub(crate) fn new(
        pair: OfPair,
        shown: Shown,
        at_least: RecordCount,
        clock: DeviceClock,
        ahead_ns: i64,
    ) -> Bracket {
        let (start_ns, end_ns) = pair.between;
        let launched = &shown.launched;
        let is_plain = launched.description.kind == Kind::Kernel;
        let kernels = launched.kernels.as_ref();
        let exact = kernels.and_then(|one| usize::try_from(one.exact_count()?).ok());
        let graph = kernels.map_or(0, |one| Arc::as_ptr(one).addr());
        Bracket {
            sought: Sought {
                start_ns,
                end_ns,
                stream: launched.stream_id.cast_unsigned(),
                name: is_plain.then(|| launched.description.name.shown.as_ref().into()),
                graph: (!is_plain).then_some(graph),
                expected: if is_plain { Some(1) } else { exact },
                at_least,
                has_collectives: kernels.is_some_and(|one| one.has_collectives()),
                prior_ns: pair.placed.start_ns.cast_signed() + ahead_ns - start_ns,
            },
            clock,
            waits: is_plain,
            has_taught: false,
            placed: pair.placed,
            shown,
            added_ns: now_ns(),
        }
    }

    pub(super) fn write_pair(&self, sink: &Sink<'_>) {
        self.shown.write(sink, &self.placed, Method::EventPair);
    }

    /// The replay, if it is one.
    pub(super) fn replay(&self) -> Option<Replay> {
        self.sought.graph.map(|_| Replay {
            between: self.sought.between(),
            stream: self.sought.stream,
        })
    }

    /// When it had surely ended, by the host's time.
    pub(super) fn end_ns(&self) -> u64 {
        let Placed {
            start_ns,
            dur_ns,
            uncertainty_ns,
        } = self.placed;
        start_ns + dur_ns + uncertainty_ns
    }

    pub(super) fn is_older(&self, now_ns: u64, than_ns: u64) -> bool {
        now_ns.saturating_sub(self.added_ns) > than_ns
    }
}

impl Shown {
    /// Writes its slice; from then on it is no longer under way.
    pub(crate) fn write(&self, sink: &Sink<'_>, placed: &Placed, method: Method) {
        write_slice(self.flow, self.track, &self.launched, placed, method);
        count(&sink.launches.timed);
        sink.under_way.end(1, 0, &sink.launches.unresolved);
    }
}
