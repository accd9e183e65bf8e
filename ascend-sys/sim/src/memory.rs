//! Memory allocation. Device memory comes from the host's heap, so that a program's copies can be checked.

use crate::wait::lock;
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Alignment of allocations, the same as the vendor's.
const ALIGN_BYTES: usize = 64;

/// The location of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Device,
    /// Pinned memory of the host.
    Host,
}

/// Size of the device memory of the process.
const DEVICE_BYTES: usize = 1 << 36;

#[derive(Default)]
pub(crate) struct Memory(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    by_address: BTreeMap<usize, (Layout, Location)>,
    device_bytes: usize,
}

impl Memory {
    /// Allocates memory and returns its address.
    pub(crate) fn allocate(&self, bytes: usize, location: Location) -> Outcome<usize> {
        fail_if(bytes == 0, ACL_ERROR_RT_PARAM_INVALID)?;
        let layout =
            Layout::from_size_align(bytes, ALIGN_BYTES).map_err(|_| ACL_ERROR_RT_PARAM_INVALID)?;
        let mut blocks = lock(&self.0);
        let device_bytes = blocks.device_bytes
            + if location == Location::Device {
                bytes
            } else {
                0
            };
        if device_bytes > DEVICE_BYTES {
            return Err(ACL_ERROR_RT_MEMORY_ALLOCATION);
        }
        // SAFETY: the layout has at least one byte.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance();
        fail_if(address == 0, ACL_ERROR_RT_MEMORY_ALLOCATION)?;
        blocks.device_bytes = device_bytes;
        blocks.by_address.insert(address, (layout, location));
        Ok(address)
    }

    /// Frees the memory that was allocated at this address and location.
    pub(crate) fn free(&self, address: usize, location: Location) -> Outcome {
        let mut blocks = lock(&self.0);
        let found = blocks
            .by_address
            .get(&address)
            .filter(|block| block.1 == location);
        let (layout, _) = *found.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        blocks.by_address.remove(&address);
        if location == Location::Device {
            blocks.device_bytes -= layout.size();
        }
        // SAFETY: it was allocated with this layout in `allocate`, and has just been removed from the map.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        Ok(())
    }

    /// Returns the number of bytes of device memory that can still be allocated, and the total.
    pub(crate) fn available(&self) -> (usize, usize) {
        let used = lock(&self.0).device_bytes;
        (DEVICE_BYTES - used, DEVICE_BYTES)
    }
}
