//! Who wants to be told of devices, of streams, of initialisation and of its end.

use crate::Outcome;
use crate::device::lock;
use crate::handle::Handle;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::ffi::c_void;
use std::sync::Mutex;

type OnDevice = unsafe extern "C" fn(i32, aclrtDeviceState, *mut c_void);
type OnStream = unsafe extern "C" fn(aclrtStream, aclrtStreamState, *mut c_void);
type OnInit = unsafe extern "C" fn(*const c_char, usize, *mut c_void) -> aclError;
type OnFinalize = unsafe extern "C" fn(*mut c_void) -> aclError;

/// All of them. The last part of each is the address of the data that it is called with.
#[derive(Default)]
pub(crate) struct Listeners {
    devices: Mutex<Vec<(String, OnDevice, usize)>>,
    streams: Mutex<Vec<(String, OnStream, usize)>>,
    inits: Mutex<Vec<(OnInit, usize)>>,
    finalizes: Mutex<Vec<(OnFinalize, usize)>>,
}

fn data(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Registers under a name, in the place of who has it; nothing to register takes the name away.
fn register<F>(
    list: &Mutex<Vec<(String, F, usize)>>,
    name: String,
    callback: Option<F>,
    address: usize,
) {
    let mut list = lock(list);
    list.retain(|(known, ..)| *known != name);
    list.extend(callback.map(|callback| (name, callback, address)));
}

impl Listeners {
    pub(crate) fn on_device(&self, name: String, callback: Option<OnDevice>, address: usize) {
        register(&self.devices, name, callback, address);
    }

    pub(crate) fn on_stream(&self, name: String, callback: Option<OnStream>, address: usize) {
        register(&self.streams, name, callback, address);
    }

    pub(crate) fn device(&self, device: i32, state: aclrtDeviceState) {
        let called: Vec<_> = lock(&self.devices)
            .iter()
            .map(|(_, callback, address)| (*callback, *address))
            .collect();
        for (callback, address) in called {
            // SAFETY: who registered it vouches for it and its data.
            unsafe { callback(device, state, data(address)) };
        }
    }

    pub(crate) fn stream(&self, stream: Handle, state: aclrtStreamState) {
        let called: Vec<_> = lock(&self.streams)
            .iter()
            .map(|(_, callback, address)| (*callback, *address))
            .collect();
        for (callback, address) in called {
            // SAFETY: who registered it vouches for it and its data.
            unsafe { callback(stream.pointer(), state, data(address)) };
        }
    }

    pub(crate) fn on_init(&self, callback: OnInit, address: usize) {
        lock(&self.inits).push((callback, address));
    }

    pub(crate) fn no_init(&self, callback: OnInit) -> Outcome {
        let mut inits = lock(&self.inits);
        let before = inits.len();
        inits.retain(|(known, _)| !std::ptr::fn_addr_eq(*known, callback));
        if inits.len() == before {
            Err(ACL_ERROR_INVALID_PARAM)
        } else {
            Ok(())
        }
    }

    pub(crate) fn on_finalize(&self, callback: OnFinalize, address: usize) {
        lock(&self.finalizes).push((callback, address));
    }

    pub(crate) fn no_finalize(&self, callback: OnFinalize) -> Outcome {
        let mut finalizes = lock(&self.finalizes);
        let before = finalizes.len();
        finalizes.retain(|(known, _)| !std::ptr::fn_addr_eq(*known, callback));
        if finalizes.len() == before {
            Err(ACL_ERROR_INVALID_PARAM)
        } else {
            Ok(())
        }
    }

    /// Calls who waits for the initialisation; the first that fails ends it.
    pub(crate) fn init(&self) -> Outcome {
        let called = lock(&self.inits).clone();
        called
            .into_iter()
            .try_for_each(|(callback, address)| init_one(callback, address))
    }

    pub(crate) fn finalize(&self) -> Outcome {
        let called = lock(&self.finalizes).clone();
        called.into_iter().try_for_each(|(callback, address)| {
            // SAFETY: who registered it vouches for it and its data.
            code(unsafe { callback(data(address)) })
        })
    }
}

/// Calls one that came after the initialisation.
pub(crate) fn init_one(callback: OnInit, address: usize) -> Outcome {
    // SAFETY: who registered it vouches for it and its data; an empty configuration is readable.
    code(unsafe { callback(c"".as_ptr(), 0, data(address)) })
}

fn code(code: aclError) -> Outcome {
    if code == ACL_SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}
