//! A captured graph: its tasks, the groups of kernels that a program may update, and the handles of its tasks.

use crate::handle::Handle;
use crate::wait::lock;
use crate::work::{Captured, Replay, Work};
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A task that a program has a handle of.
pub(crate) struct Task {
    pub(crate) handle: Handle,
    pub(crate) kind: aclmdlRITaskType,
    pub(crate) seq: u32,
}

pub(crate) struct Model {
    pub(crate) handle: Handle,
    pub(crate) id: u32,
    pub(crate) name: Mutex<String>,
    context: Handle,
    capturing: AtomicBool,
    content: Mutex<Content>,
}

/// The content of a graph.
#[derive(Default)]
pub(crate) struct Content {
    tasks: Vec<Captured>,
    /// The next run; made from the tasks when it is first needed.
    replay: Option<Arc<Replay>>,
    /// Handles and ids of its own streams, one for each stream that was captured.
    pub(crate) streams: Vec<(Handle, i32)>,
    /// Handles of its tasks, with their parts.
    pub(crate) handles: Vec<(usize, Handle)>,
    pub(crate) groups: Vec<Arc<Group>>,
    on_destroy: Vec<(unsafe extern "C" fn(*mut c_void), usize)>,
}

impl Model {
    pub(crate) fn new(handle: Handle, context: Handle) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self {
            handle,
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            name: Mutex::default(),
            context,
            capturing: AtomicBool::new(false),
            content: Mutex::default(),
        }
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

    /// Fails while something is captured into the graph.
    pub(crate) fn not_capturing(&self) -> Outcome {
        match self.capturing.load(Ordering::Acquire) {
            true => Err(ACL_ERROR_RT_MODEL_CAPTURED),
            false => Ok(()),
        }
    }

    /// Takes the tasks and groups of a capture.
    pub(crate) fn extend(&self, tasks: Vec<Captured>, groups: Vec<Arc<Group>>) {
        let mut content = lock(&self.content);
        let before = content.tasks.len();
        groups.iter().for_each(|group| group.move_by(before));
        content.groups.extend(groups);
        content.tasks.extend(tasks);
        content.replay = None;
    }

    /// Gives the graph a stream of its own.
    pub(crate) fn add_stream(&self, stream: Handle, id: i32) {
        lock(&self.content).streams.push((stream, id));
    }

    /// Replaces the work of a task. Runs under way go on with the old one.
    fn replace(&self, place: usize, work: Work) -> Outcome {
        let mut content = lock(&self.content);
        let task = content.tasks.get_mut(place);
        task.ok_or(ACL_ERROR_RT_PARAM_INVALID)?.work = work;
        content.replay = None;
        Ok(())
    }

    /// Applies the updates of its tasks. Runs under way go on as they are.
    pub(crate) fn update(&self) -> Outcome {
        self.not_capturing()?;
        lock(&self.content).replay = None;
        Ok(())
    }

    /// Returns a run of the graph in a context.
    pub(crate) fn replay(&self, context: Handle) -> Outcome<Arc<Replay>> {
        fail_if(context != self.context, ACL_ERROR_RT_MODEL_CONTEXT)?;
        self.not_capturing()?;
        let mut content = lock(&self.content);
        if let Some(replay) = &content.replay {
            return Ok(Arc::clone(replay));
        }
        let replay = Arc::new(Replay {
            model: self.id,
            name: lock(&self.name).clone(),
            tasks: content.tasks.clone().into(),
            streams: content.streams.iter().map(|(_, id)| *id).collect(),
        });
        content.replay = Some(Arc::clone(&replay));
        Ok(replay)
    }

    pub(crate) fn streams(&self) -> Vec<Handle> {
        let content = lock(&self.content);
        content.streams.iter().map(|(handle, _)| *handle).collect()
    }

    /// Returns handles of the tasks in one of the graph's own streams; `None` if the stream belongs to another graph. `give` makes the handle of a task.
    pub(crate) fn tasks_of(
        &self,
        stream: Handle,
        give: impl Fn(aclmdlRITaskType, u32) -> Handle,
    ) -> Option<Vec<Handle>> {
        let mut content = lock(&self.content);
        let mut streams = content.streams.iter();
        let part = streams.position(|(own, _)| *own == stream)?;
        if content.handles.len() < content.tasks.len() {
            let new = content.tasks.iter().zip(0..).skip(content.handles.len());
            let new: Vec<(usize, Handle)> = new
                .map(|(task, seq)| (task.part, give(kind_of(&task.work), seq)))
                .collect();
            content.handles.extend(new);
        }
        let own = content.handles.iter().filter(|(of, _)| *of == part);
        Some(own.map(|(_, handle)| *handle).collect())
    }

    pub(crate) fn on_destroy(&self, callback: unsafe extern "C" fn(*mut c_void), user_data: usize) {
        lock(&self.content).on_destroy.push((callback, user_data));
    }

    /// Takes the content of a graph that is destroyed. Runs under way go on, because they have their tasks.
    pub(crate) fn take(&self) -> Content {
        std::mem::take(&mut *lock(&self.content))
    }
}

impl Content {
    /// Calls everyone who registered for the end of the graph.
    pub(crate) fn call_back(&self) {
        for (callback, user_data) in &self.on_destroy {
            // SAFETY: the one who registered the callback vouches for it and its data until the graph is gone.
            unsafe { callback(std::ptr::with_exposed_provenance_mut(*user_data)) };
        }
    }
}

/// A group of a graph's kernels that a program may update: the kernels that it launches in an update replace these, one after the other, and run with the graph.
pub(crate) struct Group {
    pub(crate) handle: Handle,
    model: Arc<Model>,
    /// Places of its tasks in the graph, or in the capture while that is under way.
    places: Mutex<Vec<usize>>,
    updating: AtomicBool,
}

/// An update under way in a stream.
pub(crate) struct Update {
    group: Arc<Group>,
    updated: usize,
}

impl Group {
    pub(crate) fn new(handle: Handle, model: &Arc<Model>, places: Vec<usize>) -> Self {
        Self {
            handle,
            model: Arc::clone(model),
            places: Mutex::new(places),
            updating: AtomicBool::new(false),
        }
    }

    /// Moves its places: the capture has become a part of the graph, after this many tasks.
    fn move_by(&self, tasks: usize) {
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

    /// Takes a launch: a kernel, and no more of them than the group has. Returns the task's number in the graph.
    pub(crate) fn take(&mut self, work: Work) -> Outcome<u64> {
        fail_if(!work.is_kernel(), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT)?;
        let place = lock(&self.group.places).get(self.updated).copied();
        let place = place.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        self.group.model.replace(place, work)?;
        self.updated += 1;
        Ok(place as u64 + 1)
    }

    /// Ends it. Fails unless all kernels of the group were launched.
    pub(crate) fn end(&self) -> Outcome {
        self.group.updating.store(false, Ordering::Release);
        match self.updated == lock(&self.group.places).len() {
            true => Ok(()),
            false => Err(ACL_ERROR_STREAM_TASK_GROUP_INTR),
        }
    }
}

fn kind_of(work: &Work) -> aclmdlRITaskType {
    match work {
        Work::Kernel { .. } => ACL_MODEL_RI_TASK_KERNEL,
        Work::Ordered {
            name: "event_record",
        } => ACL_MODEL_RI_TASK_EVENT_RECORD,
        Work::Ordered { .. } => ACL_MODEL_RI_TASK_EVENT_WAIT,
        Work::Reset { .. } => ACL_MODEL_RI_TASK_EVENT_RESET,
        _ => ACL_MODEL_RI_TASK_DEFAULT,
    }
}
