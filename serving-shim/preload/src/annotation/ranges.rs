//! The ranges that are open, by id. No lock: a range may end on any thread, and a fork leaves nothing held.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use sa_recorder::AsyncSpan;

/// Most ranges that are open at once; more are not recorded.
const PLACES: usize = 4096;
/// How far from its own place an id may lie.
const REACH: usize = 64;
/// Ids of our own begin here: the vendor counts from 1.
const OWN: u64 = 0xa5a5_0000_0000_0000;

#[derive(Debug)]
struct Place {
    /// 0 while it is free.
    id: AtomicU64,
    span: AtomicPtr<AsyncSpan>,
}

/// Open ranges.
#[derive(Debug)]
pub(super) struct Ranges {
    places: [Place; PLACES],
    open: AtomicUsize,
    next: AtomicU64,
}

impl Ranges {
    /// No range.
    pub(super) const fn new() -> Ranges {
        Ranges {
            places: [const {
                Place {
                    id: AtomicU64::new(0),
                    span: AtomicPtr::new(ptr::null_mut()),
                }
            }; PLACES],
            open: AtomicUsize::new(0),
            next: AtomicU64::new(OWN + 1),
        }
    }

    /// Whether any is open.
    pub(super) fn any(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Whether an id is one of our own, which the vendor's library does not know.
    pub(super) fn is_our_own(&self, id: u64) -> bool {
        (OWN + 1..self.next.load(Ordering::Relaxed)).contains(&id)
    }

    /// Remembers an open range, and gives its id: the one `given`, or a new one for 0.
    pub(super) fn begin(&self, given: u64, span: AsyncSpan) -> u64 {
        let id = match given {
            0 => self.next.fetch_add(1, Ordering::Relaxed),
            given => given,
        };
        let free = |place: &&Place| {
            let taken = place
                .id
                .compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        };
        if let Some(place) = self.near(id).find(free) {
            let span = Box::into_raw(Box::new(span));
            place.span.store(span, Ordering::Release);
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        id
    }

    /// Ends the range of an id, if it is open.
    pub(super) fn end(&self, id: u64) {
        if id == 0 {
            return;
        }
        let has_id = |place: &&Place| place.id.load(Ordering::Acquire) == id;
        let Some(place) = self.near(id).find(has_id) else {
            return;
        };
        let span = place.span.swap(ptr::null_mut(), Ordering::AcqRel);
        if span.is_null() {
            return; // another thread ends it just now
        }
        place.id.store(0, Ordering::Release);
        self.open.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: from `Box::into_raw`, and taken out of the table by this thread alone.
        drop(unsafe { Box::from_raw(span) });
    }

    /// The places where an id may lie. All are looked at: one before it may be free again.
    fn near(&self, id: u64) -> impl Iterator<Item = &Place> {
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let own = usize::try_from(hash).unwrap_or(0) % PLACES;
        (own..own + REACH).map(|at| &self.places[at % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendors_ids_are_kept_and_missing_ones_are_our_own() {
        static RANGES: Ranges = Ranges::new();
        assert!(!RANGES.any());
        assert_eq!(RANGES.begin(7, AsyncSpan::off()), 7);
        let first = RANGES.begin(0, AsyncSpan::off());
        let second = RANGES.begin(0, AsyncSpan::off());
        assert_ne!(first, second);
        assert!(RANGES.is_our_own(first) && RANGES.is_our_own(second));
        assert!(!RANGES.is_our_own(7) && !RANGES.is_our_own(0) && !RANGES.is_our_own(second + 1));
        for id in [second, 7, 99, 0, first, first] {
            RANGES.end(id);
        }
        assert!(!RANGES.any());
        assert!(RANGES.is_our_own(first), "also after its end");
    }

    #[test]
    fn more_ranges_than_places_are_given_ids_and_forgotten() {
        static RANGES: Ranges = Ranges::new();
        let ids: Vec<u64> = (0..2 * PLACES)
            .map(|_| RANGES.begin(0, AsyncSpan::off()))
            .collect();
        assert!(RANGES.open.load(Ordering::Relaxed) <= PLACES);
        for id in ids {
            RANGES.end(id);
        }
        assert!(!RANGES.any());
    }
}
