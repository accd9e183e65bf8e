//! Streams.

use super::*;
use crate::stream::Stream;
use crate::work::Callback;
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

    fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) {
        let stream = stream_for_query(stream.0)?;
        status.put(match stream.is_idle() {
            true => ACL_STREAM_STATUS_COMPLETE,
            false => ACL_STREAM_STATUS_NOT_READY,
        })
    }

    fn aclrtStreamGetId(stream: aclrtStream, id: *mut i32) {
        id.put(runtime().stream_here(stream.0)?.id)
    }

    fn aclrtSetStreamAttribute(stream: aclrtStream, _attribute: aclrtStreamAttr, value: *mut aclrtStreamAttrValue) {
        value.not_null()?;
        runtime().stream_here(stream.0).map(drop)
    }

    fn aclrtRegStreamStateCallback(name: *const c_char, callback: aclrtStreamStateCallback, args: *mut c_void) {
        runtime().listeners.on_stream(name.text()?, callback, args.address());
        Ok(())
    }

    fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) {
        wait(stream.0, event.0)
    }
}

exports! { acl::lifecycle, code;
    fn aclrtDestroyStream(stream: aclrtStream) {
        let stream = destroyable(stream.0)?;
        let outcome = stream.synchronize(None);
        runtime().destroy_stream(&stream); // even if a lost device leaves it unfinished
        outcome
    }

    fn aclrtDestroyStreamForce(stream: aclrtStream) {
        runtime().destroy_stream(&*destroyable(stream.0)?);
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

exports! { acl::host_func, code;
    fn aclrtLaunchHostFunc(stream: aclrtStream, callback: aclrtHostFunc, args: *mut c_void) {
        let function = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        let stream = runtime().stream_here(stream.0)?;
        stream.submit(Work::Callback(Callback { function, data: args.address() }))
    }
}

fn create() -> Outcome<aclrtStream> {
    let context = context::here()?;
    let stream = runtime().new_stream(&context)?;
    runtime().announce(&stream);
    Ok(stream.handle.pointer())
}

fn wait(stream: aclrtStream, event: aclrtEvent) -> Outcome {
    let stream = runtime().stream_here(stream)?;
    runtime().wait(&runtime().events.get(event)?, &stream)
}

/// Returns a stream that the host queries or waits for. If the stream is captured, this fails and invalidates the capture.
fn stream_for_query(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    let stream = runtime().stream_here(stream)?;
    if let Some(capture) = stream.capture() {
        capture.status.invalidate();
        return Err(ACL_ERROR_RT_STREAM_CAPTURED);
    }
    Ok(stream)
}

/// Returns a stream that the program has created and may destroy. Notifies the listeners before that.
fn destroyable(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    let context = context::current()?;
    let found = runtime().stream(&context, stream)?;
    fail_if(context.is_default(&found), ACL_ERROR_RT_PARAM_INVALID)?;
    fail_if(found.capture().is_some(), ACL_ERROR_RT_STREAM_CAPTURED)?;
    runtime().announce_end(&found);
    Ok(found)
}

/// Waits for a stream. Returns an error that occurred in the meantime.
fn synchronize(stream: aclrtStream, timeout_ms: Option<u64>) -> Outcome {
    stream_for_query(stream)?.synchronize(timeout_ms)?;
    context::here().map(drop)
}
