//! Callbacks that programs register for devices, streams and `aclFinalize`.

use crate::handle::Handle;
use crate::wait::lock;
use crate::{Outcome, outcome};
use ascend_sys::types::*;
use std::ffi::c_void;
use std::sync::Mutex;

type OnDevice = unsafe extern "C" fn(i32, aclrtDeviceState, *mut c_void);
type OnStream = unsafe extern "C" fn(aclrtStream, aclrtStreamState, *mut c_void);
type OnFinalize = unsafe extern "C" fn(*mut c_void) -> aclError;

/// The callbacks. The last member of each tuple is the address of the callback's data.
#[derive(Default)]
pub(crate) struct Listeners {
    devices: Mutex<Vec<(String, OnDevice, usize)>>,
    streams: Mutex<Vec<(String, OnStream, usize)>>,
    finalizes: Mutex<Vec<(OnFinalize, usize)>>,
}

fn data(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Registers a callback under a name. It replaces the callback that has this name; `None` only removes it.
fn register<F>(
    list: &Mutex<Vec<(String, F, usize)>>,
    name: String,
    callback: Option<F>,
    address: usize,
) {
    let mut list = lock(list);
    list.retain(|(registered, ..)| *registered != name);
    list.extend(callback.map(|callback| (name, callback, address)));
}

/// Returns the callbacks with their data, so that they can be called without the lock: they may register other callbacks.
fn callbacks<F: Copy>(list: &Mutex<Vec<(String, F, usize)>>) -> Vec<(F, usize)> {
    let list = lock(list);
    let parts = list
        .iter()
        .map(|(_, callback, address)| (*callback, *address));
    parts.collect()
}

impl Listeners {
    pub(crate) fn on_device(&self, name: String, callback: Option<OnDevice>, address: usize) {
        register(&self.devices, name, callback, address);
    }

    pub(crate) fn on_stream(&self, name: String, callback: Option<OnStream>, address: usize) {
        register(&self.streams, name, callback, address);
    }

    pub(crate) fn device(&self, device: i32, state: aclrtDeviceState) {
        for (callback, address) in callbacks(&self.devices) {
            // SAFETY: the program that registered the callback guarantees that it and its data are valid.
            unsafe { callback(device, state, data(address)) };
        }
    }

    pub(crate) fn stream(&self, stream: Handle, state: aclrtStreamState) {
        for (callback, address) in callbacks(&self.streams) {
            // SAFETY: the program that registered the callback guarantees that it and its data are valid.
            unsafe { callback(stream.pointer(), state, data(address)) };
        }
    }

    pub(crate) fn on_finalize(&self, callback: OnFinalize, address: usize) {
        lock(&self.finalizes).push((callback, address));
    }

    pub(crate) fn finalize(&self) -> Outcome {
        let callbacks = lock(&self.finalizes).clone();
        callbacks.into_iter().try_for_each(|(callback, address)| {
            // SAFETY: the program that registered the callback guarantees that it and its data are valid.
            outcome(unsafe { callback(data(address)) })
        })
    }
}
