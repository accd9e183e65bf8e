//! The handles that programs get: numbers that look like pointers but are never dereferenced, so that a stale or invented handle is an error and not a crash.

use crate::Outcome;
use ascend_sys::types::aclError;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError, RwLock};

const INDEX_SHIFT: u32 = 4;
const INDEX_BITS: u32 = 24;
const GENERATION_SHIFT: u32 = INDEX_SHIFT + INDEX_BITS;
const GENERATION_BITS: u32 = 14;
const KIND_SHIFT: u32 = GENERATION_SHIFT + GENERATION_BITS;

/// A number that looks like a pointer to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(usize);

impl Handle {
    pub(crate) fn pointer(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

impl From<*mut c_void> for Handle {
    fn from(pointer: *mut c_void) -> Self {
        Self(pointer.addr())
    }
}

struct Slot<T> {
    generation: usize,
    value: Option<Arc<T>>,
}

/// The table of all objects of one kind for which programs have handles.
pub(crate) struct Handles<T> {
    kind: usize,
    /// The error for a handle that is not in the table.
    unknown: aclError,
    /// True if handles are reused.
    reuses: bool,
    slots: RwLock<(Vec<Slot<T>>, Vec<usize>)>,
}

impl<T> Handles<T> {
    /// Creates a table. `kind` (at most 31) distinguishes its handles from the handles of other tables. `unknown` is the error for a handle that is not in the
    /// table.
    pub(crate) const fn new(kind: usize, unknown: aclError) -> Self {
        Self {
            kind,
            unknown,
            reuses: false,
            slots: RwLock::new((Vec::new(), Vec::new())),
        }
    }

    /// Sets if a new object may get the handle of a removed one.
    pub(crate) const fn reused(mut self, reuses: bool) -> Self {
        self.reuses = reuses;
        self
    }

    /// Adds an object. `make` gets its handle.
    pub(crate) fn add(&self, make: impl FnOnce(Handle) -> T) -> Arc<T> {
        let mut table = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let (slots, free) = &mut *table;
        let index = free.pop().unwrap_or_else(|| {
            slots.push(Slot {
                generation: 0,
                value: None,
            });
            slots.len() - 1
        });
        let slot = &mut slots[index];
        if !self.reuses {
            slot.generation = (slot.generation + 1) % (1 << GENERATION_BITS);
        }
        let value = Arc::new(make(self.handle(index, slot.generation)));
        slot.value = Some(Arc::clone(&value));
        value
    }

    /// Returns the object with this handle.
    pub(crate) fn get(&self, handle: impl Into<Handle>) -> Outcome<Arc<T>> {
        let table = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let (index, generation) = self.decode(handle.into())?;
        let slot = table.0.get(index);
        let slot = slot.filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.value.clone()).ok_or(self.unknown)
    }

    /// Removes and returns the object with this handle.
    pub(crate) fn remove(&self, handle: impl Into<Handle>) -> Outcome<Arc<T>> {
        let mut table = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let (index, generation) = self.decode(handle.into())?;
        let (slots, free) = &mut *table;
        let slot = slots.get_mut(index);
        let slot = slot.filter(|slot| slot.generation == generation);
        let value = slot.and_then(|slot| slot.value.take());
        if value.is_some() {
            free.push(index);
        }
        value.ok_or(self.unknown)
    }

    /// Returns all objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let table = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        table
            .0
            .iter()
            .filter_map(|slot| slot.value.clone())
            .collect()
    }

    fn handle(&self, index: usize, generation: usize) -> Handle {
        Handle(self.kind << KIND_SHIFT | generation << GENERATION_SHIFT | index << INDEX_SHIFT)
    }

    fn decode(&self, handle: Handle) -> Outcome<(usize, usize)> {
        let index = (handle.0 >> INDEX_SHIFT) & ((1 << INDEX_BITS) - 1);
        let generation = (handle.0 >> GENERATION_SHIFT) & ((1 << GENERATION_BITS) - 1);
        let is_own = handle == self.handle(index, generation);
        is_own.then_some((index, generation)).ok_or(self.unknown)
    }
}
