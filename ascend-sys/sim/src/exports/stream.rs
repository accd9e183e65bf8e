//! Streams.

use super::{code, exports, timeout};
use crate::Outcome;
use crate::context;
use crate::event::Event;
use crate::faults::Site;
use crate::runtime::runtime;
use crate::stream::Stream;
use ascend_sys::acl;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::sync::Arc;

exports! { acl::stream, code;
    fn aclrtCreateStream(stream: *mut aclrtStream) {
        stream.not_null()?;
        stream.put(create()?)
    }

    fn aclrtCreateStreamWithConfig(stream: *mut aclrtStream, _priority: u32, _flag: u32) {
        stream.not_null()?;
        stream.put(create()?)
    }

    fn aclrtCreateStreamV2(stream: *mut aclrtStream, config: *const aclrtStreamConfigHandle) {
        stream.not_null()?;
        config.not_null()?;
        stream.put(create()?)
    }

    fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) {
        let stream = observed(stream.0)?;
        status.put(match stream.is_idle() {
            true => ACL_STREAM_STATUS_COMPLETE,
            false => ACL_STREAM_STATUS_NOT_READY,
        })
    }

    fn aclrtStreamGetId(stream: aclrtStream, id: *mut i32) {
        id.put(context::here()?.stream(stream.0)?.id)
    }

    fn aclrtGetStreamAvailableNum(count: *mut u32) {
        let left = context::here()?.device.streams_left();
        count.put(u32::try_from(left).map_err(|_| ACL_ERROR_INTERNAL_ERROR)?)
    }

    fn aclrtSetStreamAttribute(stream: aclrtStream, _attribute: aclrtStreamAttr, value: *mut aclrtStreamAttrValue) {
        value.not_null()?;
        context::here()?.stream(stream.0).map(drop)
    }

    fn aclrtGetStreamAttribute(stream: aclrtStream, _attribute: aclrtStreamAttr, value: *mut aclrtStreamAttrValue) {
        context::here()?.stream(stream.0)?;
        value.put(aclrtStreamAttrValue::default())
    }

    fn aclrtRegStreamStateCallback(name: *const c_char, callback: aclrtStreamStateCallback, args: *mut c_void) {
        runtime().listeners.on_stream(name.text()?, callback, args.address());
        Ok(())
    }

    fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) {
        wait(stream.0, event.0)
    }

    fn aclrtStreamWaitEventWithTimeout(stream: aclrtStream, event: aclrtEvent, _timeout: i32) {
        wait(stream.0, event.0)
    }
}

exports! { acl::lifecycle, code;
    fn aclrtDestroyStream(stream: aclrtStream) {
        let stream = destroyable(stream.0)?;
        let outcome = stream.synchronize(None);
        stream.destroy(); // also one that a lost device leaves unfinished
        outcome
    }

    fn aclrtDestroyStreamForce(stream: aclrtStream) {
        destroyable(stream.0)?.destroy();
        Ok(())
    }
}

exports! { acl::synchronize, code;
    fn aclrtSynchronizeStream(stream: aclrtStream) {
        synchronize(stream.0, None)
    }

    fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout_ms: i32) {
        synchronize(stream.0, timeout(timeout_ms)?)
    }
}

fn create() -> Outcome<aclrtStream> {
    let context = context::here()?;
    runtime().config.faults.check(Site::StreamCreate)?;
    let stream = Stream::new(&context, false)?;
    stream.announce();
    Ok(stream.handle.pointer())
}

fn wait(stream: aclrtStream, event: aclrtEvent) -> Outcome {
    let stream = context::here()?.stream(stream)?;
    Event::by_handle(event)?.wait_in(&stream)
}

/// A stream that the host looks at: looking at one that is captured breaks the capture.
fn observed(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    let stream = context::here()?.stream(stream)?;
    if let Some(capture) = stream.capture() {
        capture.invalidate();
        return Err(ACL_ERROR_RT_STREAM_CAPTURED);
    }
    Ok(stream)
}

/// A stream that a program made, after who wants to know was told.
fn destroyable(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    let context = context::current()?;
    let found = context.stream(stream)?;
    if context.is_default(&found) || found.of_model {
        return Err(ACL_ERROR_RT_PARAM_INVALID);
    }
    if found.capture().is_some() {
        return Err(ACL_ERROR_RT_STREAM_CAPTURED);
    }
    found.announce_end();
    Ok(found)
}

/// Waits for a stream; what failed meanwhile is the answer.
fn synchronize(stream: aclrtStream, timeout_ms: Option<u64>) -> Outcome {
    runtime().config.faults.check(Site::Synchronize)?;
    observed(stream)?.synchronize(timeout_ms)?;
    context::here().map(drop)
}
