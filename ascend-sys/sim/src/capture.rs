//! A capture: what is submitted to a stream, and to those joined to it, becomes a graph. Which calls a capture forbids, and which break it.

use crate::Outcome;
use crate::context::Context;
use crate::device::lock;
use crate::event::Event;
use crate::graph::{Captured, Group, Model};
use crate::handle::Handle;
use crate::runtime::runtime;
use crate::stream::Stream;
use crate::truth;
use crate::work::Work;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

thread_local! {
    /// How the calling thread behaves while others capture.
    static MODE: Cell<aclmdlRICaptureMode> = const { Cell::new(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) };
}

/// Sets the calling thread's mode; returns the one before.
pub(crate) fn exchange_mode(mode: aclmdlRICaptureMode) -> Outcome<aclmdlRICaptureMode> {
    valid(mode)?;
    Ok(MODE.replace(mode))
}

fn valid(mode: aclmdlRICaptureMode) -> Outcome {
    match mode {
        ACL_MODEL_RI_CAPTURE_MODE_GLOBAL..=ACL_MODEL_RI_CAPTURE_MODE_RELAXED => Ok(()),
        _ => Err(ACL_ERROR_RT_PARAM_INVALID),
    }
}

/// The captures of the process.
#[derive(Default)]
pub(crate) struct Captures {
    active: Mutex<Vec<Arc<Capture>>>,
    count: AtomicUsize,
}

pub(crate) struct Capture {
    pub(crate) model: Arc<Model>,
    mode: aclmdlRICaptureMode,
    tid: i32,
    origin: Handle,
    context: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    invalid: bool,
    /// Its streams are themselves again; others may still look at it.
    ended: bool,
    tasks: Vec<Captured>,
    streams: Vec<Part>,
    records: Vec<Mark>,
    groups: Vec<Arc<Group>>,
    /// Something other than a kernel was captured into a group.
    group_broken: bool,
}

/// What one stream has of a capture.
struct Part {
    stream: Arc<Stream>,
    /// Its tasks, and how many of them another stream has waited for.
    tasks: usize,
    joined: usize,
    /// The tasks of the group that is open in it.
    group: Option<Vec<usize>>,
}

/// After how many tasks of a stream an event was recorded.
struct Mark {
    event: Handle,
    part: usize,
    tasks: usize,
}

impl Captures {
    fn all(&self) -> Vec<Arc<Capture>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        lock(&self.active).clone()
    }

    /// Fails a call that would wait for the device behind a capture's back, such as a copy of pageable memory.
    pub(crate) fn allow_blocking(&self) -> Outcome {
        let (tid, mode) = (truth::tid(), MODE.get());
        let forbids = |capture: &Arc<Capture>| match (mode, capture.mode) {
            (ACL_MODEL_RI_CAPTURE_MODE_RELAXED, _) | (_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) => {
                false
            }
            (ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) => true,
            _ => capture.tid == tid,
        };
        if self.all().iter().any(forbids) {
            return Err(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
        }
        Ok(())
    }

    /// Fails, and breaks the captures of the context: waiting for all of a context is waiting for what is captured.
    pub(crate) fn break_those_of(&self, context: &Context) -> Outcome {
        let mut captures = self.all();
        captures.retain(|capture| capture.context == context.handle);
        captures.iter().for_each(|capture| capture.invalidate());
        match captures.is_empty() {
            true => Ok(()),
            false => Err(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT),
        }
    }

    /// Begins to capture a stream, into a new graph or at the end of one there is.
    pub(crate) fn begin(
        &self,
        context: &Context,
        stream: &Arc<Stream>,
        model: Option<Arc<Model>>,
        mode: aclmdlRICaptureMode,
    ) -> Outcome {
        valid(mode)?;
        if context.is_default(stream) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
        }
        if stream.capture().is_some() {
            return Err(ACL_ERROR_RT_STREAM_CAPTURED);
        }
        let model = model.unwrap_or_else(|| Model::new(context));
        model.begin_capture()?;
        let capture = Arc::new(Capture {
            model,
            mode,
            tid: truth::tid(),
            origin: stream.handle,
            context: context.handle,
            state: Mutex::default(),
        });
        capture.join(stream);
        let mut active = lock(&self.active);
        active.push(capture);
        self.count.store(active.len(), Ordering::Release);
        Ok(())
    }

    /// False when it was not there any more.
    fn remove(&self, gone: &Arc<Capture>) -> bool {
        let mut active = lock(&self.active);
        let before = active.len();
        active.retain(|capture| !Arc::ptr_eq(capture, gone));
        self.count.store(active.len(), Ordering::Release);
        active.len() < before
    }
}

impl Capture {
    pub(crate) fn status(&self) -> aclmdlRICaptureStatus {
        match lock(&self.state).invalid {
            true => ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED,
            false => ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.state).ended
    }

    pub(crate) fn invalidate(&self) {
        lock(&self.state).invalid = true;
    }

    /// Takes a task of one of its streams.
    pub(crate) fn add(&self, stream: &Stream, work: Work) -> Outcome {
        if matches!(work, Work::Replay(_)) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURED);
        }
        let mut state = lock(&self.state);
        if state.invalid {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
        }
        let part = state
            .part(stream.handle)
            .ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        let place = state.tasks.len();
        let is_kernel = work.is_kernel();
        match &mut state.streams[part].group {
            Some(group) if is_kernel => group.push(place),
            Some(_) => state.group_broken = true,
            None => {}
        }
        state.streams[part].tasks += 1;
        let correlation = runtime().mspti.correlate(work.record_kind());
        state.tasks.push(Captured {
            part,
            work,
            correlation,
        });
        stream.submitted_last(place as u64 + 1);
        Ok(())
    }

    /// Opens a group of kernels in a stream.
    pub(crate) fn begin_group(&self, stream: &Stream) -> Outcome {
        let mut state = lock(&self.state);
        let part = state.part(stream.handle);
        let part = part.ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        if state.streams[part].group.is_some() {
            return Err(ACL_ERROR_STREAM_TASK_GROUP_STATUS);
        }
        state.streams[part].group = Some(Vec::new());
        Ok(())
    }

    /// Closes it.
    pub(crate) fn end_group(&self, stream: &Stream) -> Outcome<Arc<Group>> {
        let mut state = lock(&self.state);
        let part = state.part(stream.handle);
        let part = part.ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        let places = state.streams[part].group.take();
        let places = places.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        if state.invalid {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
        }
        if state.group_broken {
            return Err(ACL_ERROR_STREAM_TASK_GROUP_INTR);
        }
        let group = Group::new(&self.model, places);
        state.groups.push(Arc::clone(&group));
        Ok(group)
    }

    /// Takes the record of an event, which other streams may then wait for.
    pub(crate) fn record(&self, stream: &Stream, event: &Event) -> Outcome {
        self.add(
            stream,
            Work::Ordered {
                name: "event_record",
            },
        )?;
        let mut state = lock(&self.state);
        if let Some(part) = state.part(stream.handle) {
            let tasks = state.streams[part].tasks;
            let event = event.handle;
            state.records.retain(|mark| mark.event != event);
            state.records.push(Mark { event, part, tasks });
        }
        Ok(())
    }

    /// Takes a stream's wait for one of its events: the stream is part of the capture from then on.
    pub(crate) fn wait(self: &Arc<Self>, stream: &Arc<Stream>, event: &Event) -> Outcome {
        match stream.capture() {
            None => self.join(stream),
            Some(own) if Arc::ptr_eq(&own, self) => {}
            Some(_) => return Err(ACL_ERROR_STREAM_CAPTURE_CONFLICT),
        }
        self.add(stream, Work::Ordered { name: "event_wait" })?;
        let mut state = lock(&self.state);
        let mark = state.records.iter().find(|mark| mark.event == event.handle);
        if let Some((part, tasks)) = mark.map(|mark| (mark.part, mark.tasks)) {
            let joined = &mut state.streams[part].joined;
            *joined = tasks.max(*joined);
        }
        Ok(())
    }

    fn join(self: &Arc<Self>, stream: &Arc<Stream>) {
        let part = Part {
            stream: Arc::clone(stream),
            tasks: 0,
            joined: 0,
            group: None,
        };
        lock(&self.state).streams.push(part);
        stream.set_capture(Some(Arc::clone(self)));
    }

    /// Ends it. A capture that was broken, or that left a joined stream behind, gives no graph.
    pub(crate) fn end(self: &Arc<Self>, stream: &Stream, context: &Context) -> Outcome<Arc<Model>> {
        if stream.handle != self.origin {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
        }
        if self.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && self.tid != truth::tid() {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
        }
        if !runtime().captures.remove(self) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
        }
        let state = self.take_state();
        let unjoined = state.streams[1..]
            .iter()
            .any(|part| part.joined < part.tasks);
        let open = state.streams.iter().any(|part| part.group.is_some());
        let ended = if state.invalid {
            Err(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED)
        } else if unjoined {
            Err(ACL_ERROR_RT_STREAM_UNJOINED)
        } else if open || state.group_broken {
            Err(ACL_ERROR_STREAM_TASK_GROUP_INTR)
        } else {
            let streams = state.streams.len();
            self.model
                .extend(context, state.tasks, state.groups, streams)
        };
        self.model.end_capture();
        ended.map(|()| Arc::clone(&self.model))
    }

    /// One of its streams is taken away: that breaks it. Without the one it began on nobody could end it, so it ends then.
    pub(crate) fn leave(self: &Arc<Self>, stream: &Stream) {
        self.invalidate();
        if stream.handle == self.origin && runtime().captures.remove(self) {
            drop(self.take_state());
            self.model.end_capture();
        }
    }

    /// Its streams are themselves again.
    fn take_state(&self) -> State {
        let ended = State {
            ended: true,
            ..State::default()
        };
        let state = std::mem::replace(&mut *lock(&self.state), ended);
        state
            .streams
            .iter()
            .for_each(|part| part.stream.set_capture(None));
        state
    }
}

impl State {
    fn part(&self, stream: Handle) -> Option<usize> {
        let mut streams = self.streams.iter();
        streams.position(|part| part.stream.handle == stream)
    }
}
