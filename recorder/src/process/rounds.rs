//! What a process records from time to time: losses each second, and an anchor every five.

use std::sync::atomic::Ordering;

use crate::process::state::Process;
use crate::ring::open_horizon::least_open_ns;
use crate::segment::preamble::block_anchor_line;

const ANCHOR_NS: u64 = 5_000_000_000;
const LOSSES_NS: u64 = 1_000_000_000;

/// When what is told next.
#[derive(Debug)]
pub(crate) struct Rounds {
    next_anchor_ns: u64,
    next_losses_ns: u64,
    /// How far each slot was when the last anchor was read.
    heads: Vec<u64>,
    last_anchor_ns: u64,
}

impl Rounds {
    /// The rounds of a process whose first anchor is from now.
    pub(crate) fn new(now_ns: u64) -> Rounds {
        Rounds {
            next_anchor_ns: now_ns + ANCHOR_NS,
            next_losses_ns: now_ns + LOSSES_NS,
            heads: Vec::new(),
            last_anchor_ns: now_ns,
        }
    }

    /// Tells what is due. While the file takes nothing, slot 0 must not fill up: it would give up its oldest records. Losses wait in their slots, as
    /// sums.
    pub(crate) fn make(&mut self, process: &Process, now_ns: u64) {
        if now_ns < self.next_losses_ns.min(self.next_anchor_ns) || process.is_refused() {
            return;
        }
        // Before an anchor: what explains the gaps in front of it stands in front of the next one.
        if now_ns >= self.next_losses_ns {
            process.tell_losses(now_ns + LOSSES_NS);
            self.next_losses_ns = now_ns + LOSSES_NS;
        }
        if now_ns >= self.next_anchor_ns && self.has_written(process) {
            self.tell_anchor(process);
            self.next_anchor_ns = now_ns + ANCHOR_NS;
        }
    }

    fn tell_anchor(&mut self, process: &Process) {
        // In this order: what is open when the anchor is read was open before, or began after the last one was read.
        let open_ns = least_open_ns(&process.ring).min(self.last_anchor_ns);
        let late_ns = process.open_horizon.longest_ns();
        let (line, at_ns) = block_anchor_line(process.pid, open_ns, late_ns);
        process.tell(&line);
        self.last_anchor_ns = at_ns;
        self.heads.clear();
        for slot in process.ring.slots() {
            if self.heads.try_reserve(1).is_ok() {
                self.heads.push(slot.head());
            }
        }
    }

    /// Whether each slot is in the file up to where it was: readers look for a time between two anchors (FORMAT.md §2.2).
    fn has_written(&self, process: &Process) -> bool {
        let mut heads = process.ring.slots().zip(&self.heads);
        heads.all(|(slot, head)| slot.flushed().load(Ordering::Acquire) >= *head)
    }
}
