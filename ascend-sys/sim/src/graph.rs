//! A captured graph: its tasks, and running them with one call.

use crate::Outcome;
use crate::context::Context;
use crate::device::lock;
use crate::handle::Handle;
use crate::runtime::runtime;
use crate::stream::Stream;
use crate::work::Work;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A task in a capture, and which of the capture's streams it came from.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) part: usize,
    pub(crate) work: Work,
    /// What MSPTI knows its launch by; 0 if it does not.
    pub(crate) correlation: u64,
}

/// A task that a program has a handle of.
pub(crate) struct Task {
    pub(crate) kind: aclmdlRITaskType,
    pub(crate) seq: u32,
}

/// One run of a graph.
pub(crate) struct Replay {
    pub(crate) model: u32,
    pub(crate) name: String,
    pub(crate) tasks: Arc<[Captured]>,
    /// The ids of the graph's own streams, by part.
    pub(crate) streams: Vec<i32>,
}

pub(crate) struct Model {
    pub(crate) handle: Handle,
    pub(crate) id: u32,
    pub(crate) name: Mutex<String>,
    context: Handle,
    capturing: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    tasks: Vec<Captured>,
    /// What is run; made of the tasks when it is first needed.
    replay: Option<Arc<Replay>>,
    /// Stand for the streams that were captured.
    streams: Vec<Arc<Stream>>,
    handles: Vec<(usize, Handle)>,
    groups: Vec<Arc<Group>>,
    on_destroy: Vec<(unsafe extern "C" fn(*mut c_void), usize)>,
}

impl Model {
    pub(crate) fn new(context: &Context) -> Arc<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        runtime().models.add(|handle| {
            Arc::new(Self {
                handle,
                id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
                name: Mutex::default(),
                context: context.handle,
                capturing: AtomicBool::new(false),
                content: Mutex::default(),
            })
        })
    }

    pub(crate) fn by_handle(model: aclmdlRI) -> Outcome<Arc<Self>> {
        let found = runtime().models.get(Handle::of(model));
        found.ok_or(ACL_ERROR_RT_PARAM_INVALID)
    }

    pub(crate) fn begin_capture(&self) -> Outcome {
        match self.capturing.swap(true, Ordering::AcqRel) {
            true => Err(ACL_ERROR_RT_MODEL_CAPTURED),
            false => Ok(()),
        }
    }

    pub(crate) fn end_capture(&self) {
        self.capturing.store(false, Ordering::Release);
    }

    fn not_capturing(&self) -> Outcome {
        match self.capturing.load(Ordering::Acquire) {
            true => Err(ACL_ERROR_RT_MODEL_CAPTURED),
            false => Ok(()),
        }
    }

    /// Takes the tasks of a capture and its groups, and gets a stream of its own for each one captured.
    pub(crate) fn extend(
        &self,
        context: &Context,
        tasks: Vec<Captured>,
        groups: Vec<Arc<Group>>,
        streams: usize,
    ) -> Outcome {
        let mut content = lock(&self.content);
        let before = content.tasks.len();
        groups.iter().for_each(|group| group.stands_behind(before));
        content.groups.extend(groups);
        content.tasks.extend(tasks);
        content.replay = None;
        while content.streams.len() < streams {
            content.streams.push(Stream::new(context, true)?);
        }
        Ok(())
    }

    /// Puts other work in the place of a task. Runs under way go on with the old one.
    fn replace(&self, place: usize, work: Work) -> Outcome {
        let mut content = lock(&self.content);
        let task = content.tasks.get_mut(place);
        task.ok_or(ACL_ERROR_RT_PARAM_INVALID)?.work = work;
        content.replay = None;
        Ok(())
    }

    /// Takes what its tasks were given. Runs under way go on as they are.
    pub(crate) fn update(&self) -> Outcome {
        self.not_capturing()?;
        lock(&self.content).replay = None;
        Ok(())
    }

    /// Runs it in a stream.
    pub(crate) fn execute(&self, context: &Context, stream: &Arc<Stream>) -> Outcome {
        if context.handle != self.context {
            return Err(ACL_ERROR_RT_MODEL_CONTEXT);
        }
        self.not_capturing()?;
        let replay = {
            let mut content = lock(&self.content);
            match &content.replay {
                Some(replay) => Arc::clone(replay),
                None => {
                    let replay = Arc::new(Replay {
                        model: self.id,
                        name: lock(&self.name).clone(),
                        tasks: content.tasks.clone().into(),
                        streams: content.streams.iter().map(|stream| stream.id).collect(),
                    });
                    content.replay = Some(Arc::clone(&replay));
                    replay
                }
            }
        };
        stream.submit(Work::Replay(replay))
    }

    pub(crate) fn streams(&self) -> Vec<Handle> {
        let content = lock(&self.content);
        content.streams.iter().map(|stream| stream.handle).collect()
    }

    /// Handles of the tasks that came from the stream for which `stream` stands; none if it is not of this graph.
    pub(crate) fn tasks_of(&self, stream: Handle) -> Option<Vec<Handle>> {
        let mut content = lock(&self.content);
        let part = content
            .streams
            .iter()
            .position(|own| own.handle == stream)?;
        if content.handles.len() < content.tasks.len() {
            let new = content.tasks.iter().zip(0..).skip(content.handles.len());
            let new: Vec<(usize, Handle)> = new
                .map(|(task, seq)| (task.part, handle_of(&task.work, seq)))
                .collect();
            content.handles.extend(new);
        }
        let own = content.handles.iter().filter(|(of, _)| *of == part);
        Some(own.map(|(_, handle)| *handle).collect())
    }

    pub(crate) fn on_destroy(&self, callback: unsafe extern "C" fn(*mut c_void), user_data: usize) {
        lock(&self.content).on_destroy.push((callback, user_data));
    }

    /// Runs under way go on; their tasks are theirs.
    pub(crate) fn destroy(&self) -> Outcome {
        self.not_capturing()?;
        if runtime().models.remove(self.handle).is_none() {
            return Err(ACL_ERROR_RT_PARAM_INVALID);
        }
        let content = std::mem::take(&mut *lock(&self.content));
        content.streams.iter().for_each(|stream| stream.destroy());
        for (_, task) in content.handles {
            runtime().tasks.remove(task);
        }
        for group in content.groups {
            runtime().groups.remove(group.handle);
        }
        for (callback, user_data) in content.on_destroy {
            // SAFETY: who registered the callback vouches for it and its data until the graph is gone.
            unsafe { callback(std::ptr::with_exposed_provenance_mut(user_data)) };
        }
        Ok(())
    }
}

/// A group of a graph's kernels that a program may update: what it launches in an update takes their places, one after the other, and runs with the graph.
pub(crate) struct Group {
    pub(crate) handle: Handle,
    model: Arc<Model>,
    /// Which of the graph's tasks it has; while they are captured, which of the capture's.
    places: Mutex<Vec<usize>>,
    updating: AtomicBool,
}

/// An update under way in a stream.
pub(crate) struct Update {
    group: Arc<Group>,
    updated: usize,
}

impl Group {
    pub(crate) fn new(model: &Arc<Model>, places: Vec<usize>) -> Arc<Self> {
        runtime().groups.add(|handle| {
            Arc::new(Self {
                handle,
                model: Arc::clone(model),
                places: Mutex::new(places),
                updating: AtomicBool::new(false),
            })
        })
    }

    pub(crate) fn by_handle(group: aclrtTaskGrp) -> Outcome<Arc<Self>> {
        let found = runtime().groups.get(Handle::of(group));
        found.ok_or(ACL_ERROR_RT_PARAM_INVALID)
    }

    /// The capture has become a part of the graph, whose tasks before it are so many.
    pub(crate) fn stands_behind(&self, tasks: usize) {
        let mut places = lock(&self.places);
        places.iter_mut().for_each(|place| *place += tasks);
    }
}

impl Update {
    /// Begins to update a group; only one stream may.
    pub(crate) fn begin(group: Arc<Group>) -> Outcome<Self> {
        match group.updating.swap(true, Ordering::AcqRel) {
            true => Err(ACL_ERROR_STREAM_TASK_GROUP_STATUS),
            false => Ok(Self { group, updated: 0 }),
        }
    }

    /// Takes what is launched: kernels, as many as the group has. Returns the task's number in the graph.
    pub(crate) fn take(&mut self, work: Work) -> Outcome<u64> {
        if !matches!(work, Work::Kernel { .. }) {
            return Err(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
        }
        let place = lock(&self.group.places).get(self.updated).copied();
        let place = place.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        self.group.model.replace(place, work)?;
        self.updated += 1;
        Ok(place as u64 + 1)
    }

    /// Ends it; whether all kernels of the group were launched.
    pub(crate) fn end(&self) -> Outcome {
        self.group.updating.store(false, Ordering::Release);
        match self.updated == lock(&self.group.places).len() {
            true => Ok(()),
            false => Err(ACL_ERROR_STREAM_TASK_GROUP_INTR),
        }
    }
}

fn handle_of(work: &Work, seq: u32) -> Handle {
    let kind = match work {
        Work::Kernel { .. } => ACL_MODEL_RI_TASK_KERNEL,
        Work::Ordered {
            name: "event_record",
        } => ACL_MODEL_RI_TASK_EVENT_RECORD,
        Work::Ordered { .. } => ACL_MODEL_RI_TASK_EVENT_WAIT,
        Work::Reset { .. } => ACL_MODEL_RI_TASK_EVENT_RESET,
        _ => ACL_MODEL_RI_TASK_DEFAULT,
    };
    let mut given = None;
    runtime().tasks.add(|handle| {
        given = Some(handle);
        Arc::new(Task { kind, seq })
    });
    given.expect("`add` calls its argument")
}
