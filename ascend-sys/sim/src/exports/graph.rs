//! Captured graphs.

use super::{Out, code, exports, timeout};
use crate::Outcome;
use crate::capture::exchange_mode;
use crate::context;
use crate::device::lock;
use crate::faults::Site;
use crate::graph::{Group, Model, Task};
use crate::handle::Handle;
use crate::runtime::runtime;
use crate::stream::Stream;
use ascend_sys::acl;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::sync::Arc;

exports! { acl::graph, code;
    fn aclmdlRICaptureBegin(stream: aclrtStream, mode: aclmdlRICaptureMode) {
        begin(stream.0, None, mode)
    }

    fn aclmdlRICaptureToModelRIBegin(stream: aclrtStream, model: aclmdlRI, mode: aclmdlRICaptureMode) {
        begin(stream.0, Some(Model::by_handle(model.0)?), mode)
    }

    fn aclmdlRICaptureEnd(stream: aclrtStream, model: *mut aclmdlRI) {
        model.put(std::ptr::null_mut())?;
        let context = context::here()?;
        let stream = context.stream(stream.0)?;
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        model.put(capture.end(&stream, &context)?.handle.pointer())
    }

    fn aclmdlRIExecute(model: aclmdlRI, timeout_ms: i32) {
        execute_and_wait(model.0, std::ptr::null_mut(), timeout_ms)
    }

    fn aclmdlRIExecuteAsync(model: aclmdlRI, stream: aclrtStream) {
        execute(model.0, stream.0)
    }

    fn aclmdlRIDestroy(model: aclmdlRI) {
        Model::by_handle(model.0)?.destroy()
    }

    fn aclmdlRICaptureTaskGrpBegin(stream: aclrtStream) {
        stream.not_null()?;
        let stream = context::here()?.stream(stream.0)?;
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        capture.begin_group(&stream)
    }

    fn aclmdlRICaptureTaskGrpEnd(stream: aclrtStream, group: *mut aclrtTaskGrp) {
        stream.not_null()?;
        group.put(std::ptr::null_mut())?;
        let stream = context::here()?.stream(stream.0)?;
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        group.put(capture.end_group(&stream)?.handle.pointer())
    }

    fn aclmdlRICaptureTaskUpdateBegin(stream: aclrtStream, group: aclrtTaskGrp) {
        updatable(stream.0)?.begin_update(Group::by_handle(group.0)?)
    }

    fn aclmdlRICaptureTaskUpdateEnd(stream: aclrtStream) {
        updatable(stream.0)?.end_update()
    }

    fn aclmdlRIUpdate(model: aclmdlRI) {
        Model::by_handle(model.0)?.update()
    }
}

exports! { acl::graph_info, code;
    fn aclmdlRICaptureGetInfo(stream: aclrtStream, status: *mut aclmdlRICaptureStatus, model: *mut aclmdlRI) {
        let capture = context::here()?.stream(stream.0)?.capture();
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
        id.put(Model::by_handle(model.0)?.id)
    }

    fn aclmdlRISetName(model: aclmdlRI, name: *const c_char) {
        let model = Model::by_handle(model.0)?;
        *lock(&model.name) = name.text()?;
        Ok(())
    }

    fn aclmdlRIGetName(model: aclmdlRI, length: u32, name: *mut c_char) {
        let model = Model::by_handle(model.0)?;
        let own = lock(&model.name).clone();
        name.put_text(&own, length as usize)
    }

    fn aclmdlRIGetStreams(model: aclmdlRI, streams: *mut aclrtStream, count: *mut u32) {
        fill(&Model::by_handle(model.0)?.streams(), streams, count)
    }

    fn aclmdlRIGetTasksByStream(stream: aclrtStream, tasks: *mut aclmdlRITask, count: *mut u32) {
        stream.not_null()?;
        let models = runtime().models.all();
        let own = models.iter().find_map(|model| model.tasks_of(Handle::of(stream.0)));
        fill(&own.ok_or(ACL_ERROR_RT_STREAM_MODEL)?, tasks, count)
    }

    fn aclmdlRITaskGetType(task: aclmdlRITask, kind: *mut aclmdlRITaskType) {
        kind.put(by_handle(task.0)?.kind)
    }

    fn aclmdlRITaskGetSeqId(task: aclmdlRITask, id: *mut u32) {
        id.put(by_handle(task.0)?.seq)
    }

    fn aclmdlRITaskGetParams(task: aclmdlRITask, params: *mut aclmdlRITaskParams) {
        let kind = by_handle(task.0)?.kind;
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
        Model::by_handle(model.0)?.on_destroy(callback, user_data.address());
        Ok(())
    }
}

/// A stream that is neither captured nor a graph's.
fn updatable(stream: aclrtStream) -> Outcome<Arc<Stream>> {
    if stream.is_null() {
        return Err(ACL_ERROR_RT_PARAM_INVALID);
    }
    let stream = context::here()?.stream(stream)?;
    if stream.capture().is_some() {
        return Err(ACL_ERROR_RT_STREAM_CAPTURED);
    }
    if stream.of_model {
        return Err(ACL_ERROR_RT_STREAM_MODEL);
    }
    Ok(stream)
}

fn begin(stream: aclrtStream, model: Option<Arc<Model>>, mode: aclmdlRICaptureMode) -> Outcome {
    let context = context::here()?;
    let stream = context.stream(stream)?;
    runtime().config.faults.check(Site::CaptureBegin)?;
    runtime().captures.begin(&context, &stream, model, mode)
}

pub(super) fn execute(model: aclmdlRI, stream: aclrtStream) -> Outcome {
    let context = context::here()?;
    let model = Model::by_handle(model)?;
    runtime().config.faults.check(Site::GraphExecute)?;
    model.execute(&context, &context.stream(stream)?)
}

pub(super) fn execute_and_wait(model: aclmdlRI, stream: aclrtStream, timeout_ms: i32) -> Outcome {
    let limit = timeout(timeout_ms)?;
    execute(model, stream)?;
    context::here()?.stream(stream)?.synchronize(limit)?;
    context::here().map(drop)
}

fn by_handle(task: aclmdlRITask) -> Outcome<Arc<Task>> {
    runtime()
        .tasks
        .get(Handle::of(task))
        .ok_or(ACL_ERROR_RT_PARAM_INVALID)
}

/// Writes handles where there is room for them, and always how many there are.
fn fill(handles: &[Handle], to: Out<*mut c_void>, count: Out<u32>) -> Outcome {
    let room = count.get()?;
    let there = u32::try_from(handles.len()).map_err(|_| ACL_ERROR_INTERNAL_ERROR)?;
    count.put(there)?;
    if to.0.is_null() {
        return Ok(());
    }
    if room < there {
        return Err(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY);
    }
    to.put_all(handles.iter().map(|handle| handle.pointer()))
}
