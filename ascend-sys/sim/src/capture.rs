//! A capture: what is submitted to a stream, and to those joined to it, becomes a graph. Knows which calls a capture forbids, and which break it.

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
    /// Mode of the calling thread while others capture. Nothing depends on it.
    static MODE: Cell<aclmdlRICaptureMode> = const { Cell::new(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) };
}

/// Sets the calling thread's mode. Returns the one before.
pub(crate) fn exchange_mode(mode: aclmdlRICaptureMode) -> Outcome<aclmdlRICaptureMode> {
    valid_mode(mode)?;
    Ok(MODE.replace(mode))
}

/// Fails if there is no such mode.
pub(crate) fn valid_mode(mode: aclmdlRICaptureMode) -> Outcome {
    match mode {
        ACL_MODEL_RI_CAPTURE_MODE_GLOBAL..=ACL_MODEL_RI_CAPTURE_MODE_RELAXED => Ok(()),
        _ => Err(ACL_ERROR_RT_PARAM_INVALID),
    }
}

/// The captures of the process that are under way.
#[derive(Default)]
pub(crate) struct Captures(Mutex<Vec<Arc<Capture>>>);

pub(crate) struct Capture {
    pub(crate) model: Arc<Model>,
    pub(crate) status: Arc<CaptureStatus>,
    mode: aclmdlRICaptureMode,
    tid: i32,
    /// The stream that it began on.
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

/// A stream's part of a capture.
struct Part {
    stream: Handle,
    /// Number of its tasks, and how many of them another stream has waited for.
    tasks: usize,
    joined: usize,
    /// The tasks of the group that is open in it.
    group: Option<Vec<usize>>,
}

/// The record of an event: the number of tasks of its stream before it.
struct Mark {
    event: Handle,
    part: usize,
    tasks: usize,
}

/// A capture that has ended.
#[derive(Default)]
pub(crate) struct Ended {
    /// Its streams, which are no longer captured.
    pub(crate) streams: Vec<Handle>,
    pub(crate) tasks: Vec<Captured>,
    pub(crate) groups: Vec<Arc<Group>>,
    /// The reason why it gives no graph; 0 for none.
    pub(crate) broken: aclError,
}

impl Captures {
    /// Returns the capture with this status, while it is under way.
    pub(crate) fn by_status(&self, status: &Arc<CaptureStatus>) -> Option<Arc<Capture>> {
        let all = lock(&self.0);
        let mut all = all.iter();
        all.find(|capture| Arc::ptr_eq(&capture.status, status))
            .cloned()
    }

    /// Fails if anything in a context is captured, and breaks its captures: waiting for a whole context would wait for what is captured.
    pub(crate) fn break_those_of(&self, context: Handle) -> Outcome {
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

    /// Removes a capture. Returns false if it was not there any more.
    fn remove(&self, gone: &Arc<Capture>) -> bool {
        let mut active = lock(&self.0);
        let before = active.len();
        active.retain(|capture| !Arc::ptr_eq(capture, gone));
        active.len() < before
    }

    /// Ends a capture in the stream that it began on.
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
        Ok(capture.take())
    }

    /// Breaks a capture because one of its streams is taken away. If that is the stream that it began on, nobody could end it, so it ends.
    pub(crate) fn leave(&self, capture: &Arc<Capture>, stream: Handle) -> Ended {
        capture.status.invalidate();
        if stream != capture.origin || !self.remove(capture) {
            return Ended::default();
        }
        let ended = capture.take();
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

    /// Makes a stream part of the capture.
    pub(crate) fn join(&self, stream: Handle) {
        lock(&self.state).streams.push(Part {
            stream,
            tasks: 0,
            joined: 0,
            group: None,
        });
    }

    /// Takes a task of one of its streams. Returns the task's number in the graph.
    pub(crate) fn add(&self, stream: Handle, work: Work) -> Outcome<u64> {
        fail_if(
            matches!(work, Work::Replay(_)),
            ACL_ERROR_RT_STREAM_CAPTURED,
        )?;
        let mut state = lock(&self.state);
        self.status.check()?;
        let part = state.part(stream)?;
        let place = state.tasks.len();
        let is_kernel = work.is_kernel();
        match &mut state.streams[part].group {
            Some(group) if is_kernel => group.push(place),
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
        Ok(place as u64 + 1)
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

    /// Closes the group that is open in a stream, and keeps what `make` makes of its tasks.
    pub(crate) fn end_group(
        &self,
        stream: Handle,
        make: impl FnOnce(Vec<usize>) -> Arc<Group>,
    ) -> Outcome<Arc<Group>> {
        let mut state = lock(&self.state);
        let part = state.part(stream)?;
        let places = state.streams[part].group.take();
        let places = places.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        self.status.check()?;
        fail_if(state.group_broken, ACL_ERROR_STREAM_TASK_GROUP_INTR)?;
        let group = make(places);
        state.groups.push(Arc::clone(&group));
        Ok(group)
    }

    /// Takes the record of an event, which other streams may then wait for. Returns the task's number.
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

    /// Takes a wait of a stream for one of its events. Returns the task's number.
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

    /// Takes what was captured. A capture that was broken, or that left a joined stream unfinished, gives no graph.
    fn take(&self) -> Ended {
        let state = std::mem::take(&mut *lock(&self.state));
        self.status.end();
        let mut joined = state.streams.iter().skip(1);
        let unjoined = joined.any(|part| part.joined < part.tasks);
        let open = state.streams.iter().any(|part| part.group.is_some());
        Ended {
            streams: state.streams.iter().map(|part| part.stream).collect(),
            tasks: state.tasks,
            groups: state.groups,
            broken: if self.status.is_invalid() {
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
