//! The time that intervals cover together.

/// The union of intervals, which come by their begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    /// The duration of the union.
    pub(crate) ns: i64,
    /// The end of the last interval.
    pub(crate) to_ns: i64,
}

impl Covered {
    /// Returns the empty union. Intervals begin at `from_ns` or later.
    pub(crate) fn new(from_ns: i64) -> Covered {
        Covered {
            ns: 0,
            to_ns: from_ns,
        }
    }

    /// Adds an interval. Returns the gap before it.
    pub(crate) fn add(&mut self, start_ns: i64, end_ns: i64) -> i64 {
        let gap_ns = (start_ns - self.to_ns).max(0);
        self.ns += (end_ns - start_ns.max(self.to_ns)).max(0);
        self.to_ns = self.to_ns.max(end_ns);
        gap_ns
    }
}
