//! An event of a request: its position and time, and the bounds of all events of a request.

use super::table::ProgramFlow;
use crate::clock::time_map::TimeMap;
use crate::event::line::Event;
use sa_format::Phase;
use xxhash_rust::xxh3::xxh3_64;

const OFFSET_BITS: u32 = 40;

/// Position of an event: its source, its offset there, and a bit for unfinished spans. Each event
/// has a different position, and they are in the order of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventPosition(pub(super) u64);

impl EventPosition {
    #[inline(always)]
    pub(super) fn new(source: usize, offset: usize, is_unfinished: bool) -> EventPosition {
        let position = (source as u64) << OFFSET_BITS | offset as u64;
        EventPosition(position << 1 | u64::from(is_unfinished))
    }

    pub(super) fn is_unfinished(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Value of `end_ns` for an instant.
pub(super) const INSTANT: i64 = i64::MIN;

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    pub(super) ts_ns: i64,
    pub(super) position: EventPosition,
    /// Key of its thread ([`ThreadKeys`]).
    pub(super) thread: u64,
    /// End of the span: `i64::MAX` for an unfinished one, [`INSTANT`] for an instant.
    pub(super) end_ns: i64,
}

impl Mention {
    /// Creates the mention for an event that has request ids.
    #[inline(always)]
    pub(super) fn from_event(event: &Event<'_>, position: EventPosition, thread: u64) -> Mention {
        Mention {
            ts_ns: event.ts_ns,
            position,
            thread,
            end_ns: match event.phase {
                Phase::Complete => event.ts_ns.saturating_add(event.dur_ns),
                Phase::Begin => i64::MAX,
                _ => INSTANT,
            },
        }
    }

    /// Returns true if it is a span and not an instant.
    pub(super) fn is_span(&self) -> bool {
        self.end_ns != INSTANT
    }

    /// Returns true if it is a span in which the program starts this flow.
    pub(super) fn contains_start(&self, flow: &ProgramFlow) -> bool {
        self.thread == flow.thread && (self.ts_ns..=self.end_ns).contains(&flow.start_ns)
    }

    /// Moves it to another time axis.
    pub(super) fn on_axis(self, map: &TimeMap) -> Mention {
        Mention {
            ts_ns: map.at(self.ts_ns),
            end_ns: match self.end_ns {
                INSTANT | i64::MAX => self.end_ns,
                end_ns => map.at(end_ns),
            },
            ..self
        }
    }
}

/// First event of a request, time and position of the last one, and time of the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestBounds {
    pub(super) first: Mention,
    /// `i64::MAX` if there is only one event.
    pub(super) second_ns: i64,
    pub(super) last: (i64, EventPosition),
}

impl RequestBounds {
    /// Bounds without any event.
    pub(super) const NONE: RequestBounds = RequestBounds {
        first: Mention {
            ts_ns: i64::MAX,
            position: EventPosition(u64::MAX),
            thread: 0,
            end_ns: INSTANT,
        },
        second_ns: i64::MAX,
        last: (i64::MIN, EventPosition(0)),
    };

    pub(super) fn new(mention: Mention) -> RequestBounds {
        RequestBounds {
            first: mention,
            second_ns: i64::MAX,
            last: (mention.ts_ns, mention.position),
        }
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn add_event(&mut self, mention: &Mention) {
        if *mention < self.first {
            (self.first, self.second_ns) = (*mention, self.first.ts_ns);
        } else if *mention > self.first {
            self.second_ns = self.second_ns.min(mention.ts_ns);
        }
        self.last = self.last.max((mention.ts_ns, mention.position));
    }

    /// Adds other events.
    pub(super) fn add(&mut self, other: &RequestBounds) {
        let (first, later) = (self.first.min(other.first), self.first.max(other.first));
        self.second_ns = self.second_ns.min(other.second_ns);
        // If both begin with the same event, that event is not the second one.
        if later > first {
            self.second_ns = self.second_ns.min(later.ts_ns);
        }
        self.first = first;
        self.last = self.last.max(other.last);
    }

    /// Moves it to another time axis.
    pub(super) fn on_axis(self, map: &TimeMap) -> RequestBounds {
        if self == RequestBounds::NONE {
            return self;
        }
        RequestBounds {
            first: self.first.on_axis(map),
            second_ns: match self.second_ns {
                i64::MAX => i64::MAX,
                second_ns => map.at(second_ns),
            },
            last: (map.at(self.last.0), self.last.1),
        }
    }

    /// Returns true if it has more than one event.
    pub(super) fn is_chain(&self) -> bool {
        self.first.position < EventPosition(u64::MAX) && self.first.position != self.last.1
    }
}

/// Computes keys of threads. A thread has the same key in every chunk.
#[derive(Default)]
pub(super) struct ThreadKeys {
    last: Option<(usize, (i64, i64))>,
    key: u64,
}

impl ThreadKeys {
    /// Returns the key of a recording's thread.
    #[inline]
    pub(super) fn key(&mut self, recording: usize, thread: (i64, i64)) -> u64 {
        if self.last != Some((recording, thread)) {
            self.last = Some((recording, thread));
            let (pid, tid) = thread;
            self.key = hash([recording as u64, pid.cast_unsigned(), tid.cast_unsigned()]);
        }
        self.key
    }
}

/// Returns a hash of three numbers.
pub(super) fn hash(parts: [u64; 3]) -> u64 {
    let mut bytes = [0; 24];
    for (position, part) in bytes.chunks_exact_mut(8).zip(parts) {
        position.copy_from_slice(&part.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// Returns true if a viewer can bind a flow to the event, because it is on a thread. Async spans
/// and instants of a whole process are not.
pub(super) fn can_bind_flow(event: &Event<'_>) -> bool {
    match event.phase {
        Phase::Complete | Phase::Begin => true,
        Phase::Instant | Phase::LegacyInstant => !event.is_instant_of_process(),
        _ => false,
    }
}
