//! Creates, sets, resets and destroys devices and contexts, with their streams.

use super::*;
use crate::context;
use crate::wait::lock;
use ascend_sys::types::*;

impl Runtime {
    /// Returns the device with this user id.
    pub(crate) fn device(&self, user: i32) -> Outcome<&Arc<Device>> {
        let index = usize::try_from(user).map_err(|_| ACL_ERROR_RT_INVALID_DEVICEID)?;
        let device = self.devices.get(index);
        device.ok_or(ACL_ERROR_RT_INVALID_DEVICEID)
    }

    /// Returns the device with this logical id, which the driver uses.
    pub(crate) fn device_by_logical(&self, logical: u32) -> Outcome<&Arc<Device>> {
        let mut devices = self.devices.iter();
        let device = devices.find(|device| device.logical == logical);
        device.ok_or(ACL_ERROR_RT_INVALID_DEVICEID)
    }

    fn primary(&self, user: i32) -> Outcome<(&Arc<Device>, &Mutex<Primary>)> {
        let device = self.device(user)?;
        let index = usize::try_from(user).map_err(|_| ACL_ERROR_RT_INVALID_DEVICEID)?;
        Ok((device, &self.primaries[index]))
    }

    /// Sets the primary context of a device as the calling thread's context.
    pub(crate) fn set_device(&self, user: i32) -> Outcome {
        let (device, primary) = self.primary(user)?;
        self.listeners.device(user, ACL_RT_DEVICE_STATE_SET_PRE);
        let context = {
            let mut primary = lock(primary);
            primary.references += 1;
            let context = primary
                .context
                .get_or_insert_with(|| self.new_context(device));
            Arc::clone(context)
        };
        context::set(Some(context));
        self.listeners.device(user, ACL_RT_DEVICE_STATE_SET_POST);
        Ok(())
    }

    /// Undoes one call of `set_device`, or all of them with `force`. After the last one, destroys the primary context with its streams and makes a lost device work
    /// again.
    pub(crate) fn reset_device(&self, user: i32, force: bool) -> Outcome {
        let (device, primary) = self.primary(user)?;
        self.listeners.device(user, ACL_RT_DEVICE_STATE_RESET_PRE);
        let gone = {
            let mut primary = lock(primary);
            let left = primary.references.saturating_sub(1);
            primary.references = if force { 0 } else { left };
            if primary.references == 0 {
                primary.context.take()
            } else {
                None
            }
        };
        if let Some(context) = gone {
            self.destroy_context(&context);
            device.lose(0);
        }
        self.listeners.device(user, ACL_RT_DEVICE_STATE_RESET_POST);
        Ok(())
    }

    pub(crate) fn new_context(&self, device: &Arc<Device>) -> Arc<Context> {
        self.contexts.add(|handle| Context::new(handle, device))
    }

    /// Returns all contexts of a device.
    pub(crate) fn contexts_of(&self, user: i32) -> Vec<Arc<Context>> {
        let mut contexts = self.contexts.all();
        contexts.retain(|context| context.device.user == user);
        contexts
    }

    /// Returns the stream of a handle in a context, or the default stream for a null handle.
    pub(crate) fn stream(&self, context: &Context, stream: aclrtStream) -> Outcome<Arc<Stream>> {
        if stream.is_null() {
            return self.default_stream(context);
        }
        let found = self.streams.get(stream)?;
        if found.home.context != context.handle {
            return Err(ACL_ERROR_RT_STREAM_CONTEXT);
        }
        Ok(found)
    }

    /// Returns the stream of a handle in the calling thread's context.
    pub(crate) fn stream_here(&self, stream: aclrtStream) -> Outcome<Arc<Stream>> {
        self.stream(&*context::here()?, stream)
    }

    /// Returns the default stream of a context, which is created on first use.
    pub(crate) fn default_stream(&self, context: &Context) -> Outcome<Arc<Stream>> {
        let make = || self.new_stream(context);
        let (stream, is_new) = context.default_stream(make)?;
        if is_new {
            self.announce(&stream);
        }
        Ok(stream)
    }

    /// Returns all streams of a context.
    fn streams_of(&self, context: &Context) -> Vec<Arc<Stream>> {
        let mut streams = self.streams.all();
        streams.retain(|stream| stream.home.context == context.handle);
        streams
    }

    /// Waits for all streams of a context.
    pub(crate) fn synchronize(&self, context: &Context, timeout_ms: Option<u64>) -> Outcome {
        let mut streams = self.streams_of(context).into_iter();
        streams.try_for_each(|stream| stream.synchronize(timeout_ms))
    }

    /// Destroys a context with its streams, whose work is dropped. Notifies the listeners of the streams first.
    pub(crate) fn destroy_context(&self, context: &Context) {
        for stream in self.streams_of(context) {
            self.announce_end(&stream);
        }
        let _ = self.contexts.remove(context.handle); // another thread may have been faster
        context.end();
        for stream in self.streams_of(context) {
            self.destroy_stream(&stream);
        }
    }
}
