//! Captures, which turn the work submitted to a stream and the streams joined to it into a graph. This module knows which calls a capture forbids and which
//! invalidate it.

use crate::event::CaptureStatus;
use crate::graph::{Group, Model};
use crate::handle::Handle;
use crate::mspti::mspti;
use crate::truth;
use crate::wait::lock;
use crate::work::{Captured, Work};
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

thread_local! {
    /// Mode of the calling thread while other threads capture. The simulator does not use it.
    static MODE: Cell<aclmdlRICaptureMode> = const { Cell::new(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) };
}

/// Sets the calling thread's mode and returns the previous one.
pub(crate) fn exchange_mode(mode: aclmdlRICaptureMode) -> Outcome<aclmdlRICaptureMode> {
    valid_mode(mode)?;
    Ok(MODE.replace(mode))
}

/// Fails if the mode does not exist.
pub(crate) fn valid_mode(mode: aclmdlRICaptureMode) -> Outcome {
    match mode {
        ACL_MODEL_RI_CAPTURE_MODE_GLOBAL..=ACL_MODEL_RI_CAPTURE_MODE_RELAXED => Ok(()),
        _ => Err(ACL_ERROR_RT_PARAM_INVALID),
    }
}

/// The active captures of the process.
#[derive(Default)]
pub(crate) struct Captures(Mutex<Vec<Arc<Capture>>>);

pub(crate) struct Capture {
    pub(crate) model: Arc<Model>,
    pub(crate) status: Arc<CaptureStatus>,
    mode: aclmdlRICaptureMode,
    tid: i32,
    /// The stream on which the capture began.
    origin: Handle,
    context: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tasks: Vec<Captured>,
    streams: Vec<Part>,
    records: Vec<Mark>,
    groups: Vec<Arc<Group>>,
    /// True if something other than a kernel was captured into a group.
    group_broken: bool,
}

/// One stream's part of a capture.
struct Part {
    stream: Handle,
    /// Number of the stream's tasks.
    tasks: usize,
    /// Number of tasks for which another stream has waited.
    joined: usize,
    /// The indexes of the tasks in the stream's open group.
    group: Option<Vec<usize>>,
}

/// The record of an event, with the number of tasks before it in its stream.
struct Mark {
    event: Handle,
    part: usize,
    tasks: usize,
}

/// A capture that has ended.
#[derive(Default)]
pub(crate) struct Ended {
    /// The capture's streams, which are no longer captured.
    pub(crate) streams: Vec<Handle>,
    pub(crate) tasks: Vec<Captured>,
    pub(crate) groups: Vec<Arc<Group>>,
    /// The error if the capture does not give a graph, otherwise 0.
    pub(crate) error: aclError,
}

impl Captures {
    /// Returns the active capture with this status.
    pub(crate) fn by_status(&self, status: &Arc<CaptureStatus>) -> Option<Arc<Capture>> {
        let captures = lock(&self.0);
        let mut captures = captures.iter();
        captures
            .find(|capture| Arc::ptr_eq(&capture.status, status))
            .cloned()
    }

    /// Fails if a stream of a context is captured, and invalidates the captures, because waiting for the context would wait for captured work.
    pub(crate) fn invalidate_in(&self, context: Handle) -> Outcome {
        let mut captures = lock(&self.0).clone();
        captures.retain(|capture| capture.context == context);
        captures
            .iter()
            .for_each(|capture| capture.status.invalidate());
        fail_if(!captures.is_empty(), ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)
    }

    /// Adds a capture that has begun.
    pub(crate) fn add(&self, capture: Arc<Capture>) {
        lock(&self.0).push(capture);
    }

    /// Removes a capture. Returns false if it had already been removed.
    fn remove(&self, gone: &Arc<Capture>) -> bool {
        let mut active = lock(&self.0);
        let before = active.len();
        active.retain(|capture| !Arc::ptr_eq(capture, gone));
        active.len() < before
    }

    /// Ends a capture. `stream` must be the one on which it began.
    pub(crate) fn end(&self, capture: &Arc<Capture>, stream: Handle) -> Outcome<Ended> {
        if stream != capture.origin {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && capture.tid != truth::tid() {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
        }
        if !self.remove(capture) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
        }
        Ok(capture.finish())
    }

    /// Invalidates a capture because one of its streams is destroyed. If the capture began on that stream, no call could end it, so it ends here.
    pub(crate) fn remove_stream(&self, capture: &Arc<Capture>, stream: Handle) -> Ended {
        capture.status.invalidate();
        if stream != capture.origin || !self.remove(capture) {
            return Ended::default();
        }
        let ended = capture.finish();
        capture.model.end_capture();
        ended
    }
}

impl Capture {
    pub(crate) fn new(
        model: Arc<Model>,
        mode: aclmdlRICaptureMode,
        origin: Handle,
        context: Handle,
    ) -> Self {
        Self {
            model,
            status: Arc::default(),
            mode,
            tid: truth::tid(),
            origin,
            context,
            state: Mutex::default(),
        }
    }

    pub(crate) fn status(&self) -> aclmdlRICaptureStatus {
        match self.status.is_invalid() {
            true => ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED,
            false => ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE,
        }
    }

    /// Adds a stream to the capture.
    pub(crate) fn join(&self, stream: Handle) {
        lock(&self.state).streams.push(Part {
            stream,
            tasks: 0,
            joined: 0,
            group: None,
        });
    }

    /// Adds a task of one of the streams. Returns the task's number in the graph.
    pub(crate) fn add(&self, stream: Handle, work: Work) -> Outcome<u64> {
        fail_if(
            matches!(work, Work::Replay(_)),
            ACL_ERROR_RT_STREAM_CAPTURED,
        )?;
        let mut state = lock(&self.state);
        self.status.check()?;
        let part = state.part(stream)?;
        let index = state.tasks.len();
        let is_kernel = work.is_kernel();
        match &mut state.streams[part].group {
            Some(group) if is_kernel => group.push(index),
            Some(_) => state.group_broken = true,
            None => {}
        }
        state.streams[part].tasks += 1;
        let correlation = mspti().correlate(work.record_kind());
        state.tasks.push(Captured {
            part,
            work,
            correlation,
        });
        Ok(index as u64 + 1)
    }

    /// Opens a group of kernels in a stream.
    pub(crate) fn begin_group(&self, stream: Handle) -> Outcome {
        let mut state = lock(&self.state);
        let part = state.part(stream)?;
        let group = &mut state.streams[part].group;
        fail_if(group.is_some(), ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        *group = Some(Vec::new());
        Ok(())
    }

    /// Closes the open group of a stream and adds the group that `make` creates from the indexes of its tasks.
    pub(crate) fn end_group(
        &self,
        stream: Handle,
        make: impl FnOnce(Vec<usize>) -> Arc<Group>,
    ) -> Outcome<Arc<Group>> {
        let mut state = lock(&self.state);
        let part = state.part(stream)?;
        let open = state.streams[part].group.take();
        let indexes = open.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        self.status.check()?;
        fail_if(state.group_broken, ACL_ERROR_STREAM_TASK_GROUP_INTR)?;
        let group = make(indexes);
        state.groups.push(Arc::clone(&group));
        Ok(group)
    }

    /// Captures the record of an event, for which other streams may then wait. Returns the task's number.
    pub(crate) fn record(&self, stream: Handle, event: Handle) -> Outcome<u64> {
        let name = "event_record";
        let number = self.add(stream, Work::Ordered { name })?;
        let mut state = lock(&self.state);
        if let Ok(part) = state.part(stream) {
            let tasks = state.streams[part].tasks;
            state.records.retain(|mark| mark.event != event);
            state.records.push(Mark { event, part, tasks });
        }
        Ok(number)
    }

    /// Captures a stream's wait for an event of the capture. Returns the task's number.
    pub(crate) fn wait(&self, stream: Handle, event: Handle) -> Outcome<u64> {
        let number = self.add(stream, Work::Ordered { name: "event_wait" })?;
        let mut state = lock(&self.state);
        let mark = state.records.iter().find(|mark| mark.event == event);
        if let Some((part, tasks)) = mark.map(|mark| (mark.part, mark.tasks)) {
            let joined = &mut state.streams[part].joined;
            *joined = tasks.max(*joined);
        }
        Ok(number)
    }

    /// Ends the capture and returns its content. There is no graph if the capture is invalid, if a stream was not joined again, or if a group is open or broken.
    fn finish(&self) -> Ended {
        let state = std::mem::take(&mut *lock(&self.state));
        self.status.end();
        let mut joined = state.streams.iter().skip(1);
        let unjoined = joined.any(|part| part.joined < part.tasks);
        let open = state.streams.iter().any(|part| part.group.is_some());
        Ended {
            streams: state.streams.iter().map(|part| part.stream).collect(),
            tasks: state.tasks,
            groups: state.groups,
            error: if self.status.is_invalid() {
                ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED
            } else if unjoined {
                ACL_ERROR_RT_STREAM_UNJOINED
            } else if open || state.group_broken {
                ACL_ERROR_STREAM_TASK_GROUP_INTR
            } else {
                ACL_SUCCESS
            },
        }
    }
}

impl State {
    fn part(&self, stream: Handle) -> Outcome<usize> {
        let part = self.streams.iter().position(|part| part.stream == stream);
        part.ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)
    }
}
