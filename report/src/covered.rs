//! Total time covered by a set of intervals.

/// The union of intervals, which are added in the order of their starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    /// Duration of the union.
    pub(crate) ns: i64,
    /// End of the last interval.
    pub(crate) to_ns: i64,
}

impl Covered {
    /// Creates an empty union. Intervals must not start before `from_ns`.
    pub(crate) fn new(from_ns: i64) -> Covered {
        Covered {
            ns: 0,
            to_ns: from_ns,
        }
    }

    /// Adds an interval and returns the length of the gap before it.
    pub(crate) fn add(&mut self, start_ns: i64, end_ns: i64) -> i64 {
        let gap_ns = (start_ns - self.to_ns).max(0);
        self.ns += (end_ns - start_ns.max(self.to_ns)).max(0);
        self.to_ns = self.to_ns.max(end_ns);
        gap_ns
    }
}
