//! What a process records from time to time: losses each second, and an anchor every five.

use crate::process::state::Process;
use crate::segment::preamble::anchor_line;

const ANCHOR_NS: u64 = 5_000_000_000;
const LOSSES_NS: u64 = 1_000_000_000;

/// When what is told next.
#[derive(Debug)]
pub(crate) struct Rounds {
    next_anchor_ns: u64,
    next_losses_ns: u64,
}

impl Rounds {
    /// The rounds of a process whose first anchor is from now.
    pub(crate) fn new(now_ns: u64) -> Rounds {
        Rounds {
            next_anchor_ns: now_ns + ANCHOR_NS,
            next_losses_ns: now_ns + LOSSES_NS,
        }
    }

    /// Tells what is due. While the file takes nothing, slot 0 must not fill up: it would give up its oldest records. Losses wait in their slots, as
    /// sums.
    pub(crate) fn make(&mut self, process: &Process, now_ns: u64) {
        if now_ns < self.next_losses_ns.min(self.next_anchor_ns) || process.is_refused() {
            return;
        }
        if now_ns >= self.next_losses_ns {
            process.tell_losses(now_ns + LOSSES_NS);
            self.next_losses_ns = now_ns + LOSSES_NS;
        }
        if now_ns >= self.next_anchor_ns {
            process.tell(&anchor_line(process.pid));
            self.next_anchor_ns = now_ns + ANCHOR_NS;
        }
    }
}
