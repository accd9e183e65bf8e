//! Maps the vendor's range ids to spans. There is no lock, so that a range can end on any thread and a fork leaves no lock held.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use sa_recorder::AsyncSpanId;

/// Maximum number of open ranges with the vendor's ids. Further ranges are not recorded, but counted.
const SLOTS: usize = 4096;
/// Maximum distance of an id from its first slot.
const MAX_PROBES: usize = 64;
/// Upper 16 bits of our own ids. The vendor counts from 1, and no address is as high.
const OWN: u64 = 0xa5a5 << 48;
/// True once we have returned an id of our own. Until then, all ids are the vendor's.
static USES_OWN_IDS: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Slot {
    /// The vendor's id, or 0 if the slot is free.
    id: AtomicU64,
    /// Number of the span, or 0 while the slot is being filled or emptied.
    span: AtomicU64,
}

/// Open ranges.
#[derive(Debug)]
pub(super) struct Ranges {
    slots: [Slot; SLOTS],
    open: AtomicUsize,
}

impl Ranges {
    /// Creates an empty map of open annotation ranges.
    pub(super) const fn new() -> Ranges {
        Ranges {
            slots: [const {
                Slot {
                    id: AtomicU64::new(0),
                    span: AtomicU64::new(0),
                }
            }; SLOTS],
            open: AtomicUsize::new(0),
        }
    }

    /// Stores the async span of an annotation range that begins, and returns the range's id: the vendor's, or one of our own, which contains the span's
    /// number.
    pub(super) fn begin(&self, vendor_id: u64, span: AsyncSpanId) -> u64 {
        if vendor_id == 0 {
            return own_id(span);
        }
        if span == AsyncSpanId::NONE {
            return vendor_id; // recording was just switched off; a slot without a span would never be freed
        }
        let was_free = |slot: &&Slot| {
            let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let exchanged = slot.id.compare_exchange(0, vendor_id, order, failed);
            exchanged.is_ok()
        };
        match self.slots_for(vendor_id).find(was_free) {
            Some(slot) => {
                slot.span.store(span.number(), Ordering::Release);
                self.open.fetch_add(1, Ordering::Relaxed);
            }
            None => span.abandon(), // ending it here would record a wrong duration
        }
        vendor_id
    }

    /// Removes an annotation range that ends and returns its async span, or `NONE` if the range was not recorded.
    pub(super) fn end(&self, id: u64) -> AsyncSpanId {
        if is_our_own(id) {
            return AsyncSpanId::from_number(id & !OWN);
        }
        if id == 0 || self.open.load(Ordering::Relaxed) == 0 {
            return AsyncSpanId::NONE;
        }
        let has_id = |slot: &&Slot| slot.id.load(Ordering::Acquire) == id;
        let Some(slot) = self.slots_for(id).find(has_id) else {
            return AsyncSpanId::NONE;
        };
        let span = slot.span.swap(0, Ordering::AcqRel);
        // 0: another thread is ending this range.
        if span != 0 {
            slot.id.store(0, Ordering::Release);
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        AsyncSpanId::from_number(span)
    }

    /// Returns the slots of the map in which this range id may be. All of them must be searched, because earlier ones may have become free.
    fn slots_for(&self, id: u64) -> impl Iterator<Item = &Slot> {
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = usize::try_from(hash).unwrap_or(0) % SLOTS;
        (first..first + MAX_PROBES).map(|at| &self.slots[at % SLOTS])
    }
}

fn own_id(span: AsyncSpanId) -> u64 {
    match span.number() {
        0 => 0,
        number => {
            USES_OWN_IDS.store(true, Ordering::Relaxed);
            OWN | number
        }
    }
}

/// Returns true if a range id is one of our own, which the vendor's library does not know.
pub(super) fn is_our_own(id: u64) -> bool {
    id & (0xffff << 48) == OWN && USES_OWN_IDS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_19_a_range_that_is_not_recorded_uses_no_slot() {
        static RANGES: Ranges = Ranges::new();
        for _ in 0..2 * SLOTS {
            assert_eq!(RANGES.begin(7, AsyncSpanId::NONE), 7); // recording was just switched off
            assert_eq!(RANGES.end(7), AsyncSpanId::NONE);
        }
        assert_eq!(RANGES.open.load(Ordering::Relaxed), 0);
        RANGES.begin(7, AsyncSpanId::from_number(1));
        assert_eq!(RANGES.end(7).number(), 1);
    }
}
