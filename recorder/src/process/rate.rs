//! How fast each thread records, seen from outside: how far its slot's head moved between two looks.

use crate::ring::file::Ring;
use crate::sys::clock;

const IDLE_NS: u64 = 250_000_000;
/// Bytes that a thread's ring should hold when the helper wakes.
const GOAL_BYTES: u64 = 32 << 10;
/// A shorter sleep ends too late for threads that record at full speed: waking a sleeping processor takes as long.
pub(crate) const SHORTEST_NS: u64 = 100_000;

/// The last look at every slot.
#[derive(Debug)]
pub(crate) struct Rates {
    pub(crate) at_ns: u64,
    slots: Vec<SlotRate>,
}

#[derive(Clone, Copy, Debug)]
struct SlotRate {
    head: u64,
    /// How long its thread needs for [`GOAL_BYTES`].
    pause_ns: u64,
}

impl Rates {
    /// Looks for the first time: nobody has moved yet.
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

    /// Looks again.
    pub(crate) fn measure(&mut self, ring: &Ring) {
        let now = clock::now_ns();
        let elapsed_ns = now.saturating_sub(self.at_ns); // a clock that is refused shows 0
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

    /// How long to sleep so that a thread that goes on as before fills a small part of its ring.
    pub(crate) fn pause_ns(&self) -> u64 {
        let pauses = self.slots.iter().map(|rate| rate.pause_ns);
        pauses.min().unwrap_or(IDLE_NS)
    }

    /// Whether the slot's thread records faster than a sleeping helper could follow.
    pub(crate) fn is_fast(&self, slot: usize) -> bool {
        let rate = self.slots.get(slot);
        rate.is_some_and(|rate| rate.pause_ns < SHORTEST_NS)
    }

    /// How many threads do.
    pub(crate) fn fast_threads(&self) -> usize {
        let is_fast = |slot: &usize| self.is_fast(*slot);
        (0..self.slots.len()).filter(is_fast).count()
    }
}

/// How long a thread takes for the goal if it published `moved` bytes in `elapsed_ns`.
fn pause_ns(moved: u64, elapsed_ns: u64) -> u64 {
    let pause = elapsed_ns.saturating_mul(GOAL_BYTES).checked_div(moved);
    pause.unwrap_or(IDLE_NS).min(IDLE_NS)
}
