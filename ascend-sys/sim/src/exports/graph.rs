//! Captured graphs.

use super::*;
use crate::capture::exchange_mode;
use crate::runtime::{Runtime, runtime};
use crate::stream::Stream;
use std::sync::Arc;

exports! { acl::graph, code;
    fn aclmdlRICaptureBegin(stream: aclrtStream, mode: aclmdlRICaptureMode) {
        let context = context::here()?;
        let stream = runtime().stream(&context, stream.0)?;
        runtime().begin_capture(&context, &stream, mode)
    }

    fn aclmdlRICaptureEnd(stream: aclrtStream, model: *mut aclmdlRI) {
        model.put(std::ptr::null_mut())?;
        let context = context::here()?;
        let stream = runtime().stream(&context, stream.0)?;
        model.put(runtime().end_capture(&stream)?.handle.pointer())
    }

    fn aclmdlRIExecuteAsync(model: aclmdlRI, stream: aclrtStream) {
        execute(model.0, stream.0)
    }

    fn aclmdlRIDestroy(model: aclmdlRI) {
        runtime().destroy_model(&*runtime().models.get(model.0)?)
    }

    fn aclmdlRICaptureTaskGrpBegin(stream: aclrtStream) {
        stream.not_null()?;
        let stream = runtime().stream_here(stream.0)?;
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        capture.begin_group(stream.handle)
    }

    fn aclmdlRICaptureTaskGrpEnd(stream: aclrtStream, group: *mut aclrtTaskGrp) {
        stream.not_null()?;
        group.put(std::ptr::null_mut())?;
        let stream = runtime().stream_here(stream.0)?;
        group.put(runtime().end_group(&stream)?.handle.pointer())
    }

    fn aclmdlRICaptureTaskUpdateBegin(stream: aclrtStream, group: aclrtTaskGrp) {
        uncaptured_stream(stream.0)?.begin_update(runtime().groups.get(group.0)?)
    }

    fn aclmdlRICaptureTaskUpdateEnd(stream: aclrtStream) {
        uncaptured_stream(stream.0)?.end_update()
    }
}

exports! { acl::graph_info, code;
    fn aclmdlRICaptureGetInfo(stream: aclrtStream, status: *mut aclmdlRICaptureStatus, model: *mut aclmdlRI) {
        let capture = runtime().stream_here(stream.0)?.capture();
        let (capture_status, captured) = match &capture {
            Some(capture) => (capture.status(), capture.model.handle.pointer()),
            None => (ACL_MODEL_RI_CAPTURE_STATUS_NONE, std::ptr::null_mut()),
        };
        status.put(capture_status)?;
        if model.0.is_null() {
            return Ok(());
        }
        model.put(captured)
    }

    fn aclmdlRICaptureThreadExchangeMode(mode: *mut aclmdlRICaptureMode) {
        let before = exchange_mode(mode.get()?)?;
        mode.put(before)
    }
}

/// Returns a stream, which must not be null or captured.
fn uncaptured_stream(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    fail_if(stream.is_null(), ACL_ERROR_RT_PARAM_INVALID)?;
    let stream = runtime().stream_here(stream)?;
    fail_if(stream.capture().is_some(), ACL_ERROR_RT_STREAM_CAPTURED)?;
    Ok(stream)
}

fn execute(model: aclmdlRI, stream: aclrtStream) -> Outcome {
    let context = context::here()?;
    let model = runtime().models.get(model)?;
    Runtime::execute(&model, &context, &runtime().stream(&context, stream)?)
}
