//! Contexts. A thread needs one before it uses a device. Each stream belongs to a context, and so does the error of a failed kernel.

use crate::device::Device;
use crate::handle::Handle;
use crate::stream::{Home, Stream};
use crate::wait::lock;
use crate::{Outcome, outcome};
use ascend_sys::codes::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) device: Arc<Device>,
    default: Mutex<Option<Arc<Stream>>>,
    /// 0, or the error that every call returns from now on. The context's streams share it.
    error: Arc<AtomicI32>,
    alive: AtomicBool,
}

/// The context shared by all threads that set a device, and the number of times that the device was set.
#[derive(Default)]
pub(crate) struct Primary {
    pub(crate) context: Option<Arc<Context>>,
    pub(crate) references: u32,
}

/// Sets the calling thread's context.
pub(crate) fn set(context: Option<Arc<Context>>) {
    CURRENT.with(|current| current.replace(context));
}

/// Returns the calling thread's context, even if it has failed.
pub(crate) fn current() -> Outcome<Arc<Context>> {
    let context = CURRENT.with(|current| current.borrow().clone());
    let alive = context.filter(|context| context.alive.load(Ordering::Relaxed));
    alive.ok_or(ACL_ERROR_RT_CONTEXT_NULL)
}

/// Returns the calling thread's context, if neither it nor its device has failed.
pub(crate) fn here() -> Outcome<Arc<Context>> {
    let context = current()?;
    context.check()?;
    Ok(context)
}

impl Context {
    pub(crate) fn new(handle: Handle, device: &Arc<Device>) -> Self {
        Self {
            handle,
            device: Arc::clone(device),
            default: Mutex::default(),
            error: Arc::default(),
            alive: AtomicBool::new(true),
        }
    }

    fn check(&self) -> Outcome {
        self.device.check()?;
        outcome(self.error.load(Ordering::Relaxed))
    }

    /// Returns the parts of the context that its streams share.
    pub(crate) fn home(&self) -> Home {
        Home {
            context: self.handle,
            device: Arc::clone(&self.device),
            error: Arc::clone(&self.error),
        }
    }

    /// Returns the default stream, and true if `make` has just created it for its first use.
    pub(crate) fn default_stream(
        &self,
        make: impl FnOnce() -> Outcome<Arc<Stream>>,
    ) -> Outcome<(Arc<Stream>, bool)> {
        let mut default = lock(&self.default);
        if let Some(stream) = &*default {
            return Ok((Arc::clone(stream), false));
        }
        let stream = make()?;
        *default = Some(Arc::clone(&stream));
        Ok((stream, true))
    }

    pub(crate) fn is_default(&self, stream: &Stream) -> bool {
        let default = lock(&self.default);
        default
            .as_ref()
            .is_some_and(|default| default.handle == stream.handle)
    }

    /// Ends the context, so that no thread can use it any more.
    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
        lock(&self.default).take();
    }
}
