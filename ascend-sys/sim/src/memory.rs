//! Memory: device memory is the host's heap, so a program's copies can be checked.

use crate::wait::lock;
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// As the vendor's: memory begins at a multiple of it.
const ALIGN_BYTES: usize = 64;

/// The place of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    /// Pinned memory of the host.
    Host,
}

/// Device memory of the process.
const DEVICE_BYTES: usize = 1 << 36;

#[derive(Default)]
pub(crate) struct Memory(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    by_address: BTreeMap<usize, (Layout, Place)>,
    device_bytes: usize,
}

impl Memory {
    /// The address of new memory.
    pub(crate) fn allocate(&self, bytes: usize, place: Place) -> Outcome<usize> {
        fail_if(bytes == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        let layout =
            Layout::from_size_align(bytes, ALIGN_BYTES).map_err(|_| ACL_ERROR_RT_PARAM_INVALID)?;
        let mut blocks = lock(&self.0);
        let device_bytes = blocks.device_bytes + if place == Place::Device { bytes } else { 0 };
        if device_bytes > DEVICE_BYTES {
            return Err(ACL_ERROR_RT_MEMORY_ALLOCATION);
        }
        // SAFETY: the layout is of at least one byte.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance();
        fail_if(address == 0, ACL_ERROR_RT_MEMORY_ALLOCATION)?;
        blocks.device_bytes = device_bytes;
        blocks.by_address.insert(address, (layout, place));
        Ok(address)
    }

    /// Frees what was allocated at this address, in this place.
    pub(crate) fn free(&self, address: usize, place: Place) -> Outcome {
        let mut blocks = lock(&self.0);
        let known = blocks
            .by_address
            .get(&address)
            .filter(|block| block.1 == place);
        let (layout, _) = *known.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        blocks.by_address.remove(&address);
        if place == Place::Device {
            blocks.device_bytes -= layout.size();
        }
        // SAFETY: allocated above with this layout, and forgotten just now.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        Ok(())
    }

    /// Returns how many bytes of the device can still be allocated, and its total.
    pub(crate) fn left(&self) -> (usize, usize) {
        let used = lock(&self.0).device_bytes;
        (DEVICE_BYTES - used, DEVICE_BYTES)
    }
}
