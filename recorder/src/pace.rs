//! How fast each thread records, seen from outside: how far its slot's head moved between two looks.

use crate::clock;
use crate::process::Process;

const IDLE_NS: u64 = 250_000_000;
/// Bytes that a thread's ring should hold when the helper wakes.
const GOAL_BYTES: u64 = 32 << 10;
/// A shorter sleep ends too late for threads that record at full speed: waking a sleeping processor takes as long.
pub(crate) const SHORTEST_NS: u64 = 100_000;

/// The last look at every slot.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) at_ns: u64,
    slots: Vec<SlotPace>,
}

#[derive(Clone, Copy, Debug)]
struct SlotPace {
    head: u64,
    /// How long its thread needs for [`GOAL_BYTES`].
    pause_ns: u64,
}

impl Pace {
    /// Looks for the first time: nobody has moved yet.
    pub(crate) fn new(process: &Process) -> Pace {
        let slots = process.ring.slots().map(|slot| SlotPace {
            head: slot.head(),
            pause_ns: IDLE_NS,
        });
        Pace {
            slots: slots.collect(),
            at_ns: clock::now_ns(),
        }
    }

    /// Looks again.
    pub(crate) fn measure(&mut self, process: &Process) {
        let now = clock::now_ns();
        let elapsed_ns = now.saturating_sub(self.at_ns); // a clock that is refused shows 0
        for (index, slot) in process.ring.slots().enumerate() {
            let before = self.slots.get(index).map_or(0, |pace| pace.head);
            let head = slot.head();
            let pace = SlotPace {
                head,
                pause_ns: pause_ns(head - before, elapsed_ns),
            };
            match self.slots.get_mut(index) {
                Some(place) => *place = pace,
                None => self.slots.push(pace),
            }
        }
        self.at_ns = now;
    }

    /// How long to sleep so that a thread that goes on as before fills a small part of its ring.
    pub(crate) fn pause_ns(&self) -> u64 {
        let pauses = self.slots.iter().map(|pace| pace.pause_ns);
        pauses.min().unwrap_or(IDLE_NS)
    }

    /// Whether the slot's thread records faster than a sleeping helper could follow.
    pub(crate) fn is_fast(&self, slot: usize) -> bool {
        self.slots
            .get(slot)
            .is_some_and(|pace| pace.pause_ns < SHORTEST_NS)
    }

    /// How many threads do.
    pub(crate) fn fast_threads(&self) -> usize {
        (0..self.slots.len())
            .filter(|slot| self.is_fast(*slot))
            .count()
    }
}

/// How long a thread takes for the goal if it published `moved` bytes in `elapsed_ns`.
fn pause_ns(moved: u64, elapsed_ns: u64) -> u64 {
    let pause = elapsed_ns.saturating_mul(GOAL_BYTES).checked_div(moved);
    pause.unwrap_or(IDLE_NS).min(IDLE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_the_rate() {
        assert_eq!(pause_ns(0, 1_000_000), IDLE_NS);
        assert_eq!(pause_ns(GOAL_BYTES, 1_000_000), 1_000_000);
        assert_eq!(pause_ns(4 * GOAL_BYTES, 80_000), 20_000);
        assert_eq!(pause_ns(1, IDLE_NS), IDLE_NS);
    }

    #[test]
    fn fast_are_those_that_fill_the_goal_in_a_short_sleep() {
        let slot = |pause_ns| SlotPace { head: 0, pause_ns };
        let slots = vec![slot(IDLE_NS), slot(25_000), slot(SHORTEST_NS)];
        let pace = Pace { at_ns: 0, slots };
        assert_eq!((pace.fast_threads(), pace.pause_ns()), (1, 25_000));
        assert!(pace.is_fast(1) && !pace.is_fast(2) && !pace.is_fast(3));
    }
}
