//! A map from addresses to names. It has no lock, so that a launch never waits for another one and a fork leaves no lock held. Its size is bounded: further addresses stay without a name.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::kernel_name::KernelName;

/// Maximum number of addresses.
const SLOTS: usize = 1 << 14;
/// Maximum distance of an address from its first slot.
const MAX_PROBES: usize = 64;
/// Maximum number of names over the life of the process. An address that is reused may get a different name each time.
const MAX_NAMES: u32 = 1 << 16;

/// An entry of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Address with a name.
    Named(&'static KernelName),
    /// Address that is known to have no name.
    Nameless,
}

#[derive(Debug)]
struct Slot {
    /// 0 while the slot is free. Does not change after that.
    address: AtomicUsize,
    /// Null if the name was forgotten.
    name: AtomicPtr<KernelName>,
}

/// Names by address.
#[derive(Debug)]
pub(super) struct Table {
    slots: [Slot; SLOTS],
    name_count: AtomicU32,
    /// Newest element of the linked list of all names.
    newest: AtomicPtr<ListedName>,
    /// True once there was no room for a name.
    full: AtomicBool,
}

/// A name in a linked list. Names are never freed, because a launch on another thread may be using them. Without the list a leak checker would report
/// replaced names as leaked, and end the host with its own exit code.
struct ListedName {
    name: KernelName,
    previous: *mut ListedName,
}

/// Marker for addresses without a name.
static NAMELESS: KernelName = KernelName::EMPTY;

impl Table {
    /// Creates an empty map from addresses to kernel names.
    pub(super) const fn new() -> Table {
        Table {
            slots: [const {
                Slot {
                    address: AtomicUsize::new(0),
                    name: AtomicPtr::new(ptr::null_mut()),
                }
            }; SLOTS],
            name_count: AtomicU32::new(0),
            newest: AtomicPtr::new(ptr::null_mut()),
            full: AtomicBool::new(false),
        }
    }

    /// Returns the kernel name of an address, or that it has none. Returns `None` if neither is known.
    pub(super) fn get(&self, address: usize) -> Option<Entry> {
        let name = self.find(address)?.name.load(Ordering::Acquire);
        // SAFETY: null, `NAMELESS`, or from `Box::leak`.
        let name = unsafe { name.as_ref() }?;
        match ptr::eq(name, &NAMELESS) {
            true => Some(Entry::Nameless),
            false => Some(Entry::Named(name)),
        }
    }

    /// Sets the kernel name of an address and replaces its previous name. Does nothing if there is no room.
    pub(super) fn set(&self, address: usize, name: &CStr) {
        let name = name.to_string_lossy();
        let entry = self.get(address);
        if matches!(entry, Some(Entry::Named(current)) if current.raw == name) {
            return;
        }
        let Some(slot) = self.claim(address) else {
            self.full.store(true, Ordering::Relaxed);
            return;
        };
        if self.name_count.fetch_add(1, Ordering::Relaxed) >= MAX_NAMES {
            self.name_count.store(MAX_NAMES, Ordering::Relaxed);
            self.full.store(true, Ordering::Relaxed);
            slot.name.store(ptr::null_mut(), Ordering::Release); // no name is better than a wrong one
            return;
        }
        let name = self.leak(KernelName::new(name.into_owned()));
        slot.name.store(name, Ordering::Release);
    }

    /// Adds a kernel name to the list of all names, which are never freed, and returns its address.
    fn leak(&self, name: KernelName) -> *mut KernelName {
        let listed = Box::leak(Box::new(ListedName {
            name,
            previous: self.newest.load(Ordering::Acquire),
        }));
        while let Err(newest) = self.newest.compare_exchange_weak(
            listed.previous,
            listed,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            listed.previous = newest;
        }
        &raw mut listed.name
    }

    /// Returns true if there is no room for the kernel name of an address, so that asking the runtime for it would be useless.
    pub(super) fn refuses(&self, address: usize) -> bool {
        self.full.load(Ordering::Relaxed)
            && (self.name_count.load(Ordering::Relaxed) >= MAX_NAMES || !self.has_slot(address))
    }

    /// Records that the kernel of an address has no name.
    pub(super) fn set_nameless(&self, address: usize) {
        match self.claim(address) {
            Some(slot) => {
                let nameless = ptr::from_ref(&NAMELESS).cast_mut();
                slot.name.store(nameless, Ordering::Release);
            }
            None => self.full.store(true, Ordering::Relaxed),
        }
    }

    /// Removes the kernel name of an address.
    pub(super) fn forget(&self, address: usize) {
        if let Some(slot) = self.find(address) {
            slot.name.store(ptr::null_mut(), Ordering::Release);
        }
    }

    fn find(&self, address: usize) -> Option<&Slot> {
        if address == 0 {
            return None;
        }
        for slot in self.slots_for(address) {
            match slot.address.load(Ordering::Acquire) {
                0 => return None,
                found if found == address => return Some(slot),
                _ => {}
            }
        }
        None
    }

    /// Returns true if an address has a slot (a place in the map) or could get one.
    fn has_slot(&self, address: usize) -> bool {
        let is_usable = |found: usize| found == 0 || found == address;
        self.slots_for(address)
            .any(|slot| is_usable(slot.address.load(Ordering::Relaxed)))
    }

    /// Returns the slot (the place in the map) of an address. If it has none yet, claims a free one. Returns `None` if there is none.
    fn claim(&self, address: usize) -> Option<&Slot> {
        if address == 0 {
            return None;
        }
        self.slots_for(address).find(|slot| {
            let claimed =
                slot.address
                    .compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
            claimed.is_ok() || claimed == Err(address)
        })
    }

    /// Returns the slots (places in the map) in which an address may be, the preferred one first.
    fn slots_for(&self, address: usize) -> impl Iterator<Item = &Slot> {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = usize::try_from(hash).unwrap_or(0) % SLOTS;
        (first..first + MAX_PROBES).map(|at| &self.slots[at % SLOTS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_accepts_no_more_and_keeps_its_entries() {
        static TABLE: Table = Table::new();
        for address in 1..=2 * SLOTS {
            TABLE.set(address * 64, c"kernel");
        }
        let named = (1..=2 * SLOTS)
            .filter(|address| TABLE.get(address * 64).is_some())
            .count();
        assert!(named <= SLOTS && named > SLOTS / 2, "{named}");
        let refused = (1..=2 * SLOTS).filter(|address| TABLE.refuses(address * 64));
        assert_eq!(refused.count(), 2 * SLOTS - named, "exactly the others");
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        static TABLE: Table = Table::new();
        TABLE.name_count.store(MAX_NAMES - 1, Ordering::Relaxed);
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
