//! A context: what a thread must have before it uses a device. Streams belong to one, and so does the error that a failed kernel leaves behind.

use crate::Outcome;
use crate::device::{Device, lock};
use crate::handle::Handle;
use crate::runtime::runtime;
use crate::stream::Stream;
use ascend_sys::codes::*;
use ascend_sys::types::*;
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
    /// 0, or the error that every call gets from now on.
    error: AtomicI32,
    alive: AtomicBool,
}

/// Makes a context the calling thread's.
pub(crate) fn set(context: Option<Arc<Context>>) {
    CURRENT.with(|current| current.replace(context));
}

/// The calling thread's context, whatever happened to it.
pub(crate) fn current() -> Outcome<Arc<Context>> {
    let context = CURRENT.with(|current| current.borrow().clone());
    let alive = context.filter(|context| context.alive.load(Ordering::Relaxed));
    alive.ok_or(ACL_ERROR_RT_CONTEXT_NULL)
}

/// The calling thread's context, if neither it nor its device failed.
pub(crate) fn here() -> Outcome<Arc<Context>> {
    let context = current()?;
    context.check()?;
    Ok(context)
}

impl Context {
    pub(crate) fn new(device: &Arc<Device>) -> Arc<Self> {
        runtime().contexts.add(|handle| {
            Arc::new(Self {
                handle,
                device: Arc::clone(device),
                default: Mutex::default(),
                error: AtomicI32::new(0),
                alive: AtomicBool::new(true),
            })
        })
    }

    pub(crate) fn by_handle(context: aclrtContext) -> Outcome<Arc<Self>> {
        let found = runtime().contexts.get(Handle::of(context));
        found.ok_or(ACL_ERROR_RT_CONTEXT_NULL)
    }

    fn check(&self) -> Outcome {
        self.device.check()?;
        match self.error.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Leaves an error that stays.
    pub(crate) fn fail(&self, code: i32) {
        self.error.store(code, Ordering::Relaxed);
    }

    /// The stream of a handle; the default stream for none.
    pub(crate) fn stream(&self, stream: aclrtStream) -> Outcome<Arc<Stream>> {
        if stream.is_null() {
            return self.default_stream();
        }
        let found = runtime().streams.get(Handle::of(stream));
        let found = found.ok_or(ACL_ERROR_RT_INVALID_HANDLE)?;
        if found.context != self.handle {
            return Err(ACL_ERROR_RT_STREAM_CONTEXT);
        }
        Ok(found)
    }

    /// The default stream, made when it is first used.
    pub(crate) fn default_stream(&self) -> Outcome<Arc<Stream>> {
        let mut default = lock(&self.default);
        if let Some(stream) = &*default {
            return Ok(Arc::clone(stream));
        }
        let stream = Stream::new(self, false)?;
        *default = Some(Arc::clone(&stream));
        drop(default);
        stream.announce();
        Ok(stream)
    }

    pub(crate) fn is_default(&self, stream: &Stream) -> bool {
        let default = lock(&self.default);
        default
            .as_ref()
            .is_some_and(|default| default.handle == stream.handle)
    }

    /// All its streams, without those of graphs.
    pub(crate) fn streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = runtime().streams.all();
        streams.retain(|stream| stream.context == self.handle && !stream.of_model);
        streams
    }

    /// Waits for all its streams.
    pub(crate) fn synchronize(&self, timeout_ms: Option<u64>) -> Outcome {
        let mut streams = self.streams().into_iter();
        streams.try_for_each(|stream| stream.synchronize(timeout_ms))
    }

    /// Takes it away with its streams, whose work is dropped, after who wants to know was told of them.
    pub(crate) fn destroy(&self) {
        for stream in self.streams() {
            stream.announce_end();
        }
        runtime().contexts.remove(self.handle);
        self.alive.store(false, Ordering::Relaxed);
        lock(&self.default).take();
        for stream in self.streams() {
            stream.destroy();
        }
    }
}
