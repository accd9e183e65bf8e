//! The device runtime: its handles and numbers (`ascend` makes the calls), a thread's cache of its streams, and the answers that a thread would get from the
//! runtime without us.

pub(crate) mod ascend;
pub(crate) mod stream_cache;
pub(crate) mod thread;

/// An error code of the runtime.
pub type Code = i32;

/// The runtime's handle of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub usize);

/// A context, which a thread needs before it uses a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(pub usize);

/// An event, which gets the device's time when a stream reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event(pub usize);

/// A graph that was or is being captured, or 0 if its handle is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Graph(pub usize);

/// A task: its stream and its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The id of the stream.
    pub stream: u32,
    /// The id of the task.
    pub id: u32,
}

/// Bounds of a time of the host or of a device, in ns since it was started, or of the offset between two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low_ns: i64,
    pub(crate) high_ns: i64,
}

impl Bounds {
    pub(crate) const fn new(low_ns: i64, high_ns: i64) -> Bounds {
        Bounds { low_ns, high_ns }
    }

    /// Returns the range of times that is within both bounds.
    pub(crate) fn and(self, other: Bounds) -> Bounds {
        let low_ns = self.low_ns.max(other.low_ns);
        Bounds::new(low_ns, self.high_ns.min(other.high_ns))
    }

    /// Returns the bounds, or `None` if the lower one is above the upper one, so that they contradict each other.
    pub(crate) fn possible(self) -> Option<Bounds> {
        self.is_possible().then_some(self)
    }

    pub(crate) fn is_possible(self) -> bool {
        self.low_ns <= self.high_ns
    }

    pub(crate) fn middle_ns(self) -> i64 {
        self.low_ns.midpoint(self.high_ns)
    }

    /// Returns the maximum error, in ns, of assuming `time_ns` for a time within these bounds.
    pub(crate) fn uncertainty_ns(self, time_ns: i64) -> u64 {
        let later = self.high_ns - time_ns;
        (time_ns - self.low_ns).max(later).unsigned_abs()
    }

    pub(crate) fn wider(self, by_ns: i64) -> Bounds {
        let high_ns = self.high_ns.saturating_add(by_ns);
        Bounds::new(self.low_ns.saturating_sub(by_ns), high_ns)
    }
}

/// Rounds ns down to whole ones.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a conversion of f64 to i64 saturates"
)]
pub(crate) fn whole_ns(ns: f64) -> i64 {
    ns.floor() as i64
}
