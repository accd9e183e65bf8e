//! Captured graphs.

use super::*;
use crate::capture::exchange_mode;
use crate::graph::Model;
use crate::handle::Handle;
use crate::runtime::{Runtime, runtime};
use crate::stream::Stream;
use crate::wait::lock;
use std::sync::Arc;

exports! { acl::graph, code;
    fn aclmdlRICaptureBegin(stream: aclrtStream, mode: aclmdlRICaptureMode) {
        begin(stream.0, None, mode)
    }

    fn aclmdlRICaptureToModelRIBegin(stream: aclrtStream, model: aclmdlRI, mode: aclmdlRICaptureMode) {
        begin(stream.0, Some(runtime().models.get(model.0)?), mode)
    }

    fn aclmdlRICaptureEnd(stream: aclrtStream, model: *mut aclmdlRI) {
        model.put(std::ptr::null_mut())?;
        let context = context::here()?;
        let stream = runtime().stream(&context, stream.0)?;
        model.put(runtime().end_capture(&context, &stream)?.handle.pointer())
    }

    fn aclmdlRIExecute(model: aclmdlRI, timeout_ms: i32) {
        execute_and_wait(model.0, std::ptr::null_mut(), timeout_ms)
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
        updatable(stream.0)?.begin_update(runtime().groups.get(group.0)?)
    }

    fn aclmdlRICaptureTaskUpdateEnd(stream: aclrtStream) {
        updatable(stream.0)?.end_update()
    }

    fn aclmdlRIUpdate(model: aclmdlRI) {
        runtime().models.get(model.0)?.update()
    }
}

exports! { acl::graph_info, code;
    fn aclmdlRICaptureGetInfo(stream: aclrtStream, status: *mut aclmdlRICaptureStatus, model: *mut aclmdlRI) {
        let capture = runtime().stream_here(stream.0)?.capture();
        let (said, captured) = match &capture {
            Some(capture) => (capture.status(), capture.model.handle.pointer()),
            None => (ACL_MODEL_RI_CAPTURE_STATUS_NONE, std::ptr::null_mut()),
        };
        status.put(said)?;
        if model.0.is_null() {
            return Ok(());
        }
        model.put(captured)
    }

    fn aclmdlRICaptureThreadExchangeMode(mode: *mut aclmdlRICaptureMode) {
        let before = exchange_mode(mode.get()?)?;
        mode.put(before)
    }

    fn aclmdlRIGetId(model: aclmdlRI, id: *mut u32) {
        id.put(runtime().models.get(model.0)?.id)
    }

    fn aclmdlRISetName(model: aclmdlRI, name: *const c_char) {
        let model = runtime().models.get(model.0)?;
        *lock(&model.name) = name.text()?;
        Ok(())
    }

    fn aclmdlRIGetName(model: aclmdlRI, length: u32, name: *mut c_char) {
        let model = runtime().models.get(model.0)?;
        let own = lock(&model.name).clone();
        name.put_text(&own, length as usize)
    }

    fn aclmdlRIGetStreams(model: aclmdlRI, streams: *mut aclrtStream, count: *mut u32) {
        fill(&runtime().models.get(model.0)?.streams(), streams, count)
    }

    fn aclmdlRIGetTasksByStream(stream: aclrtStream, tasks: *mut aclmdlRITask, count: *mut u32) {
        stream.not_null()?;
        fill(&runtime().tasks_of(stream.0)?, tasks, count)
    }

    fn aclmdlRITaskGetType(task: aclmdlRITask, kind: *mut aclmdlRITaskType) {
        kind.put(runtime().tasks.get(task.0)?.kind)
    }

    fn aclmdlRITaskGetSeqId(task: aclmdlRITask, id: *mut u32) {
        id.put(runtime().tasks.get(task.0)?.seq)
    }

    fn aclmdlRITaskGetParams(task: aclmdlRITask, params: *mut aclmdlRITaskParams) {
        let kind = runtime().tasks.get(task.0)?.kind;
        params.put(aclmdlRITaskParams {
            kind,
            reserved: [0; 3],
            task_group: std::ptr::null_mut(),
            op_info: std::ptr::null_mut(),
            op_info_size: 0,
            reserved_after: [0; 32],
            params: [0; 16],
        })
    }

    fn aclmdlRIDestroyRegisterCallback(model: aclmdlRI, callback: aclrtCallback, user_data: *mut c_void) {
        let callback = callback.ok_or(ACL_ERROR_RT_PARAM_INVALID)?;
        runtime().models.get(model.0)?.on_destroy(callback, user_data.address());
        Ok(())
    }
}

/// Returns a stream that is neither captured nor owned by a graph.
fn updatable(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    fail_if(stream.is_null(), ACL_ERROR_RT_PARAM_INVALID)?;
    let stream = runtime().stream_here(stream)?;
    fail_if(stream.capture().is_some(), ACL_ERROR_RT_STREAM_CAPTURED)?;
    fail_if(stream.of_model, ACL_ERROR_RT_STREAM_MODEL)?;
    Ok(stream)
}

fn begin(stream: aclrtStream, model: Option<Arc<Model>>, mode: aclmdlRICaptureMode) -> Outcome {
    let context = context::here()?;
    let stream = runtime().stream(&context, stream)?;
    config().faults.check(Site::CaptureBegin)?;
    runtime().begin_capture(&context, &stream, model, mode)
}

pub(super) fn execute(model: aclmdlRI, stream: aclrtStream) -> Outcome {
    let context = context::here()?;
    let model = runtime().models.get(model)?;
    config().faults.check(Site::GraphExecute)?;
    Runtime::execute(&model, &context, &runtime().stream(&context, stream)?)
}

pub(super) fn execute_and_wait(model: aclmdlRI, stream: aclrtStream, timeout_ms: i32) -> Outcome {
    let limit = timeout(timeout_ms)?;
    execute(model, stream)?;
    runtime().stream_here(stream)?.synchronize(limit)?;
    context::here().map(drop)
}

/// Writes handles if there is room for them, and always their number.
fn fill(handles: &[Handle], to: Out<*mut c_void>, count: Out<u32>) -> Outcome {
    let room = count.get()?;
    let there = u32::try_from(handles.len()).map_err(|_| ACL_ERROR_INTERNAL_ERROR)?;
    count.put(there)?;
    if to.0.is_null() {
        return Ok(());
    }
    fail_if(room < there, ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY)?;
    to.put_all(handles.iter().map(|handle| handle.pointer()))
}
