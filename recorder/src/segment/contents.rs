//! What a segment holds, counted while it is written, and reported when the segment is removed.

/// What one segment holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Bytes on disk.
    pub(crate) bytes: u64,
    /// Events, and those that its loss records tell of.
    pub(crate) events: u64,
    /// Up to which position it holds each slot, by slot; 0 where it holds nothing of it.
    pub(crate) reached: Vec<u64>,
    /// When it was begun, and when it was full.
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

impl Contents {
    /// Returns the contents of a segment that begins at this time.
    pub(crate) fn begun_at(began_ns: u64) -> Contents {
        Contents {
            began_ns,
            ..Contents::default()
        }
    }

    /// Counts a block that was written: its slot and the position it ends at, unless it has none, and its events.
    pub(crate) fn add(&mut self, block: Option<(u32, u64)>, events: u64) {
        self.events += events;
        if let Some((slot, end)) = block {
            self.reach(slot, end);
        }
    }

    /// Notes up to which position it holds, or tells of, a slot.
    pub(crate) fn reach(&mut self, slot: u32, end: u64) {
        let slot = slot as usize;
        if self.reached.len() <= slot {
            self.reached.resize(slot + 1, 0);
        }
        self.reached[slot] = self.reached[slot].max(end);
    }

    /// Joins what was written later.
    pub(crate) fn append(&mut self, later: &Contents) {
        self.bytes += later.bytes;
        self.events += later.events;
        if self.reached.len() < later.reached.len() {
            self.reached.resize(later.reached.len(), 0);
        }
        for (reached, later) in self.reached.iter_mut().zip(&later.reached) {
            *reached = (*reached).max(*later);
        }
        if self.began_ns == 0 {
            self.began_ns = later.began_ns;
        }
        self.ended_ns = later.ended_ns;
    }
}
