//! The speed at which each thread records, measured from outside: the distance that its slot's head
//! moves between two measurements.

use crate::ring::file::Ring;
use crate::sys::clock;

const IDLE_NS: u64 = 250_000_000;
/// Number of bytes that a thread's ring should contain when the helper wakes.
const GOAL_BYTES: u64 = 32 << 10;
/// Shortest useful sleep in ns. A shorter one ends too late for threads that record at full speed,
/// because waking a sleeping processor takes as long.
pub(crate) const SHORTEST_NS: u64 = 100_000;

/// The latest measurement of every slot.
#[derive(Debug)]
pub(crate) struct Rates {
    pub(crate) at_ns: u64,
    slots: Vec<SlotRate>,
}

#[derive(Clone, Copy, Debug)]
struct SlotRate {
    head: u64,
    /// Time in ns that its thread needs for [`GOAL_BYTES`].
    pause_ns: u64,
}

impl Rates {
    /// Starts to measure how fast each slot's thread records. Until [`Rates::measure`], all threads
    /// count as idle.
    pub(crate) fn new(ring: &Ring) -> Rates {
        let slots = ring.slots().map(|slot| SlotRate {
            head: slot.head(),
            pause_ns: IDLE_NS,
        });
        Rates {
            slots: slots.collect(),
            at_ns: clock::now_ns(),
        }
    }

    /// Measures how fast every slot's thread has recorded since the last measurement.
    pub(crate) fn measure(&mut self, ring: &Ring) {
        let now = clock::now_ns();
        let elapsed_ns = now.saturating_sub(self.at_ns); // a clock that the system refuses reads 0
        for (index, slot) in ring.slots().enumerate() {
            let before = self.slots.get(index).map_or(0, |rate| rate.head);
            let head = slot.head();
            let rate = SlotRate {
                head,
                pause_ns: pause_ns(head - before, elapsed_ns),
            };
            match self.slots.get_mut(index) {
                Some(place) => *place = rate,
                None => self.slots.push(rate),
            }
        }
        self.at_ns = now;
    }

    /// Returns the time in ns that the helper thread may sleep: until then, a thread that continues
    /// at its measured speed fills only a small part of its ring area.
    pub(crate) fn pause_ns(&self) -> u64 {
        let pauses = self.slots.iter().map(|rate| rate.pause_ns);
        pauses.min().unwrap_or(IDLE_NS)
    }

    /// Returns true if the thread of this slot (given by index) records faster than a sleeping
    /// helper thread could follow.
    pub(crate) fn is_fast(&self, slot: usize) -> bool {
        let rate = self.slots.get(slot);
        rate.is_some_and(|rate| rate.pause_ns < SHORTEST_NS)
    }

    /// Returns the number of threads that record faster than a sleeping helper thread could follow.
    pub(crate) fn fast_threads(&self) -> usize {
        let is_fast = |slot: &usize| self.is_fast(*slot);
        (0..self.slots.len()).filter(is_fast).count()
    }
}

/// Returns the time in ns that a thread needs for [`GOAL_BYTES`] if it published `moved` bytes in
/// `elapsed_ns`.
fn pause_ns(moved: u64, elapsed_ns: u64) -> u64 {
    let pause = elapsed_ns.saturating_mul(GOAL_BYTES).checked_div(moved);
    pause.unwrap_or(IDLE_NS).min(IDLE_NS)
}
