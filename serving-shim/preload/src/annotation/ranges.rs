//! Which span a range of the vendor's id is. No lock: a range may end on any thread, and a fork leaves nothing held.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use sa_recorder::AsyncSpanId;

/// Most of the vendor's ranges that are open at once; more are not recorded, and counted.
const PLACES: usize = 4096;
/// How far from its own place an id may lie.
const REACH: usize = 64;
/// What the upper 16 bits of our own ids are: the vendor counts from 1, and no address is so high.
const OWN: u64 = 0xa5a5 << 48;
/// Whether any was handed out: until then all are the vendor's.
static GAVE_OWN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Place {
    /// 0 while it is free.
    id: AtomicU64,
    /// 0 while it is being filled or emptied.
    span: AtomicU64,
}

/// Open ranges.
#[derive(Debug)]
pub(super) struct Ranges {
    places: [Place; PLACES],
    open: AtomicUsize,
}

impl Ranges {
    /// No range.
    pub(super) const fn new() -> Ranges {
        Ranges {
            places: [const {
                Place {
                    id: AtomicU64::new(0),
                    span: AtomicU64::new(0),
                }
            }; PLACES],
            open: AtomicUsize::new(0),
        }
    }

    /// Remembers what span an open range is, and gives its id: the one `given` by the vendor, else one of our own, which says it by itself.
    pub(super) fn begin(&self, given: u64, span: AsyncSpanId) -> u64 {
        if given == 0 {
            return own_id(span);
        }
        if span == AsyncSpanId::NONE {
            return given; // switched off just now; a place without a span would never be free again
        }
        let free = |place: &&Place| {
            let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            place.id.compare_exchange(0, given, order, failed).is_ok()
        };
        match self.near(given).find(free) {
            Some(place) => {
                place.span.store(span.number(), Ordering::Release);
                self.open.fetch_add(1, Ordering::Relaxed);
            }
            None => span.abandon(), // to end it here would record a length that it had not
        }
        given
    }

    /// The span of a range that ends; none if it is not one that was recorded.
    pub(super) fn end(&self, id: u64) -> AsyncSpanId {
        if is_our_own(id) {
            return AsyncSpanId::of_number(id & !OWN);
        }
        if id == 0 || self.open.load(Ordering::Relaxed) == 0 {
            return AsyncSpanId::NONE;
        }
        let has_id = |place: &&Place| place.id.load(Ordering::Acquire) == id;
        let Some(place) = self.near(id).find(has_id) else {
            return AsyncSpanId::NONE;
        };
        let span = place.span.swap(0, Ordering::AcqRel);
        if span != 0 {
            place.id.store(0, Ordering::Release); // else another thread ends it just now
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        AsyncSpanId::of_number(span)
    }

    /// The places where an id may lie. All are looked at: one before it may be free again.
    fn near(&self, id: u64) -> impl Iterator<Item = &Place> {
        let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let own = usize::try_from(hash).unwrap_or(0) % PLACES;
        (own..own + REACH).map(|at| &self.places[at % PLACES])
    }
}

fn own_id(span: AsyncSpanId) -> u64 {
    match span.number() {
        0 => 0,
        number => {
            GAVE_OWN.store(true, Ordering::Relaxed);
            OWN | number
        }
    }
}

/// Whether an id is one of our own, which the vendor's library does not know.
pub(super) fn is_our_own(id: u64) -> bool {
    id & (0xffff << 48) == OWN && GAVE_OWN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_19_a_range_that_is_not_recorded_takes_no_place() {
        static RANGES: Ranges = Ranges::new();
        for _ in 0..2 * PLACES {
            assert_eq!(RANGES.begin(7, AsyncSpanId::NONE), 7); // switched off just now
            assert_eq!(RANGES.end(7), AsyncSpanId::NONE);
        }
        assert_eq!(RANGES.open.load(Ordering::Relaxed), 0);
        RANGES.begin(7, AsyncSpanId::of_number(1));
        assert_eq!(RANGES.end(7).number(), 1);
    }
}
