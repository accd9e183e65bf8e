//! Addresses → names: no lock, so that a launch never waits for another one and a fork leaves nothing held. Bounded; what does not fit stays without a name.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::kernel_name::KernelName;

/// Most addresses.
const PLACES: usize = 1 << 14;
/// How far from its own place an address may lie.
const REACH: usize = 64;
/// Most names that are ever made: an address that is used again and again may get another one each time.
const MAX_NAMES: u32 = 1 << 16;

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Its name.
    Named(&'static KernelName),
    /// That it has none.
    Nameless,
}

#[derive(Debug)]
struct Place {
    /// 0 while nobody has taken it; never changes after.
    address: AtomicUsize,
    /// Null for one that was forgotten.
    name: AtomicPtr<KernelName>,
}

/// Names by address.
#[derive(Debug)]
pub(super) struct Table {
    places: [Place; PLACES],
    made: AtomicU32,
    /// The name that was made last; all hang together.
    last: AtomicPtr<KeptName>,
    /// A name was refused for want of room.
    full: AtomicBool,
}

/// A name, which is never freed: a launch on another thread may be using it. A leak checker would take one that another has replaced for lost, and end
/// the host with a code of its own, if nothing led to it.
struct KeptName {
    name: KernelName,
    before: *mut KeptName,
}

/// Stands for the name of those that have none.
static NAMELESS: KernelName = KernelName::EMPTY;

impl Table {
    /// An empty table.
    pub(super) const fn new() -> Table {
        Table {
            places: [const {
                Place {
                    address: AtomicUsize::new(0),
                    name: AtomicPtr::new(ptr::null_mut()),
                }
            }; PLACES],
            made: AtomicU32::new(0),
            last: AtomicPtr::new(ptr::null_mut()),
            full: AtomicBool::new(false),
        }
    }

    /// What is known of an address.
    pub(super) fn get(&self, address: usize) -> Option<Entry> {
        let name = self.find(address)?.name.load(Ordering::Acquire);
        // SAFETY: null, `NAMELESS`, or from `Box::leak`.
        let name = unsafe { name.as_ref() }?;
        match ptr::eq(name, &NAMELESS) {
            true => Some(Entry::Nameless),
            false => Some(Entry::Named(name)),
        }
    }

    /// Names an address, whatever it was called before.
    pub(super) fn set(&self, address: usize, name: &CStr) {
        let name = name.to_string_lossy();
        let known = self.get(address);
        if matches!(known, Some(Entry::Named(known)) if known.raw == name) {
            return;
        }
        let Some(place) = self.take(address) else {
            self.full.store(true, Ordering::Relaxed);
            return;
        };
        if self.made.fetch_add(1, Ordering::Relaxed) >= MAX_NAMES {
            self.made.store(MAX_NAMES, Ordering::Relaxed);
            self.full.store(true, Ordering::Relaxed);
            place.name.store(ptr::null_mut(), Ordering::Release); // rather none than a wrong one
            return;
        }
        let name = self.keep(KernelName::new(name.into_owned()));
        place.name.store(name, Ordering::Release);
    }

    /// Keeps a name for good.
    fn keep(&self, name: KernelName) -> *mut KernelName {
        let made = Box::leak(Box::new(KeptName {
            name,
            before: self.last.load(Ordering::Acquire),
        }));
        while let Err(other) =
            self.last
                .compare_exchange_weak(made.before, made, Ordering::AcqRel, Ordering::Acquire)
        {
            made.before = other;
        }
        &raw mut made.name
    }

    /// Whether there is no room for the name of an address, so that nobody need look for it.
    pub(super) fn refuses(&self, address: usize) -> bool {
        self.full.load(Ordering::Relaxed)
            && (self.made.load(Ordering::Relaxed) >= MAX_NAMES || !self.has_place(address))
    }

    /// Remembers that an address has no name.
    pub(super) fn set_nameless(&self, address: usize) {
        match self.take(address) {
            Some(place) => {
                let nameless = ptr::from_ref(&NAMELESS).cast_mut();
                place.name.store(nameless, Ordering::Release);
            }
            None => self.full.store(true, Ordering::Relaxed),
        }
    }

    /// Forgets what an address was called.
    pub(super) fn forget(&self, address: usize) {
        if let Some(place) = self.find(address) {
            place.name.store(ptr::null_mut(), Ordering::Release);
        }
    }

    fn find(&self, address: usize) -> Option<&Place> {
        if address == 0 {
            return None;
        }
        for place in self.near(address) {
            match place.address.load(Ordering::Acquire) {
                0 => return None,
                taken if taken == address => return Some(place),
                _ => {}
            }
        }
        None
    }

    /// Whether an address has a place, or would find one.
    fn has_place(&self, address: usize) -> bool {
        let is_free = |taken: usize| taken == 0 || taken == address;
        self.near(address)
            .any(|place| is_free(place.address.load(Ordering::Relaxed)))
    }

    /// The place of an address, taken now if it has none yet and there is room.
    fn take(&self, address: usize) -> Option<&Place> {
        if address == 0 {
            return None;
        }
        self.near(address).find(|place| {
            let taken =
                place
                    .address
                    .compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok() || taken == Err(address)
        })
    }

    /// The places where an address may lie, its own first.
    fn near(&self, address: usize) -> impl Iterator<Item = &Place> {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let own = usize::try_from(hash).unwrap_or(0) % PLACES;
        (own..own + REACH).map(|at| &self.places[at % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_takes_no_more_and_keeps_what_it_has() {
        static TABLE: Table = Table::new();
        for address in 1..=2 * PLACES {
            TABLE.set(address * 64, c"kernel");
        }
        let named = (1..=2 * PLACES).filter(|address| TABLE.get(address * 64).is_some());
        let named = named.count();
        assert!(named <= PLACES && named > PLACES / 2, "{named}");
        let refused = (1..=2 * PLACES).filter(|address| TABLE.refuses(address * 64));
        assert_eq!(refused.count(), 2 * PLACES - named, "exactly the others");
    }

    #[test]
    fn names_are_not_made_without_end() {
        static TABLE: Table = Table::new();
        TABLE.made.store(MAX_NAMES - 1, Ordering::Relaxed);
        TABLE.set(0x10, c"last");
        let last = TABLE.get(0x10);
        assert!(matches!(last, Some(Entry::Named(name)) if name.raw == "last"));
        assert!(!TABLE.refuses(0x20));
        TABLE.set(0x10, c"another");
        TABLE.set(0x20, c"another");
        assert!(TABLE.refuses(0x10) && TABLE.refuses(0x30));
        assert_eq!((TABLE.get(0x10), TABLE.get(0x20)), (None, None));
    }
}
