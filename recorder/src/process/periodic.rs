//! Records that a process repeats: losses each second, and an anchor every five seconds. Also the
//! times at which recording threads do this.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::process::state::Process;
use crate::sys::clock;
use crate::text::record::metadata_line;

const ANCHOR_NS: u64 = 5_000_000_000;
const LOSSES_NS: u64 = 1_000_000_000;

/// Times of the next records.
#[derive(Debug)]
pub(crate) struct PeriodicRecords {
    next_anchor_ns: u64,
    next_losses_ns: u64,
}

impl PeriodicRecords {
    /// Returns the times of the next records for a process that records its first anchor at
    /// `now_ns`.
    pub(crate) fn new(now_ns: u64) -> PeriodicRecords {
        PeriodicRecords {
            next_anchor_ns: now_ns + ANCHOR_NS,
            next_losses_ns: now_ns + LOSSES_NS,
        }
    }

    /// Writes an anchor or loss records if they are due at `now_ns`. Does nothing while the file
    /// cannot be written: otherwise slot 0 would fill up and drop its oldest records. Losses then
    /// wait as sums in their slots.
    pub(crate) fn record_due(&mut self, process: &Process, now_ns: u64) {
        if now_ns < self.next_losses_ns.min(self.next_anchor_ns) || process.is_write_failing() {
            return;
        }
        if now_ns >= self.next_losses_ns {
            process.report_losses(now_ns + LOSSES_NS);
            self.next_losses_ns = now_ns + LOSSES_NS;
        }
        if now_ns >= self.next_anchor_ns {
            process.append_own(&metadata_line(process.pid, &clock::anchor()));
            self.next_anchor_ns = now_ns + ANCHOR_NS;
        }
    }
}

/// State of the upkeep that recording threads do.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(super) began_ns: u64,
    pub(super) next_ns: AtomicU64,
    /// Number of times that a ring was full and was flushed.
    pub(super) full: AtomicU32,
    /// Times of the records that a helper would write, for a process without one.
    pub(super) periodic: Mutex<PeriodicRecords>,
}

impl Default for Upkeep {
    fn default() -> Upkeep {
        let now_ns = clock::now_ns();
        Upkeep {
            began_ns: now_ns,
            next_ns: AtomicU64::new(0),
            full: AtomicU32::new(0),
            periodic: Mutex::new(PeriodicRecords::new(now_ns)),
        }
    }
}
