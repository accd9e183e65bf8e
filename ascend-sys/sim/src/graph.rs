//! A captured graph: its tasks, and the groups of kernels that a program may update.

use crate::device::Device;
use crate::handle::Handle;
use crate::wait::lock;
use crate::work::{Captured, Replay, Work};
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Model {
    pub(crate) handle: Handle,
    pub(crate) id: u32,
    context: Handle,
    device: Arc<Device>,
    capturing: AtomicBool,
    content: Mutex<Content>,
}

/// The content of a graph.
#[derive(Default)]
struct Content {
    tasks: Vec<Captured>,
    /// The next run, which is created from the tasks when it is first needed.
    replay: Option<Arc<Replay>>,
    /// Ids of the graph's own streams, one for each captured stream.
    streams: Vec<i32>,
    groups: Vec<Arc<Group>>,
}

impl Model {
    pub(crate) fn new(handle: Handle, context: Handle, device: &Arc<Device>) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self {
            handle,
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            context,
            device: Arc::clone(device),
            capturing: AtomicBool::new(true),
            content: Mutex::default(),
        }
    }

    pub(crate) fn end_capture(&self) {
        self.capturing.store(false, Ordering::Release);
    }

    /// Fails while the graph is being captured.
    pub(crate) fn not_capturing(&self) -> Outcome {
        match self.capturing.load(Ordering::Acquire) {
            true => Err(ACL_ERROR_RT_MODEL_CAPTURED),
            false => Ok(()),
        }
    }

    /// Sets the tasks and groups, from a capture of `streams` streams.
    pub(crate) fn fill(
        &self,
        tasks: Vec<Captured>,
        groups: Vec<Arc<Group>>,
        streams: usize,
    ) -> Outcome {
        let own = (0..streams).map(|_| self.device.allocate_stream_id());
        *lock(&self.content) = Content {
            tasks,
            replay: None,
            streams: own.collect::<Outcome<_>>()?,
            groups,
        };
        Ok(())
    }

    /// Replaces the work of a task. Runs that have already been submitted keep the old work.
    fn replace(&self, index: usize, work: Work) -> Outcome {
        let mut content = lock(&self.content);
        let task = content.tasks.get_mut(index);
        task.ok_or(ACL_ERROR_RT_PARAM_INVALID)?.work = work;
        content.replay = None;
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
            tasks: content.tasks.clone().into(),
            streams: content.streams.clone(),
        });
        content.replay = Some(Arc::clone(&replay));
        Ok(replay)
    }

    /// Ends a graph and returns its groups. Submitted runs continue, because they have their own list of tasks.
    pub(crate) fn end(&self) -> Vec<Arc<Group>> {
        let content = std::mem::take(&mut *lock(&self.content));
        for stream in content.streams {
            self.device.free_stream_id(stream);
        }
        content.groups
    }
}

/// A group of a graph's kernels that a program may update. The kernels that it launches during an update replace these in order, and run with the graph.
pub(crate) struct Group {
    pub(crate) handle: Handle,
    model: Arc<Model>,
    /// Indexes of the group's tasks in the graph.
    indexes: Vec<usize>,
    updating: AtomicBool,
}

/// An update that has begun in a stream.
pub(crate) struct Update {
    group: Arc<Group>,
    updated: usize,
}

impl Group {
    pub(crate) fn new(handle: Handle, model: &Arc<Model>, indexes: Vec<usize>) -> Self {
        Self {
            handle,
            model: Arc::clone(model),
            indexes,
            updating: AtomicBool::new(false),
        }
    }
}

impl Update {
    /// Begins an update of a group. Fails if another stream is updating it.
    pub(crate) fn begin(group: Arc<Group>) -> Outcome<Self> {
        match group.updating.swap(true, Ordering::AcqRel) {
            true => Err(ACL_ERROR_STREAM_TASK_GROUP_STATUS),
            false => Ok(Self { group, updated: 0 }),
        }
    }

    /// Replaces the next kernel of the group. Fails if `work` is not a kernel, or if the group has no more kernels. Returns the task's number in the graph.
    pub(crate) fn replace_next(&mut self, work: Work) -> Outcome<u64> {
        fail_if(!work.is_kernel(), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT)?;
        let next = self.group.indexes.get(self.updated).copied();
        let index = next.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
        self.group.model.replace(index, work)?;
        self.updated += 1;
        Ok(index as u64 + 1)
    }

    /// Ends the update. Fails unless all kernels of the group were replaced.
    pub(crate) fn end(&self) -> Outcome {
        self.group.updating.store(false, Ordering::Release);
        match self.updated == self.group.indexes.len() {
            true => Ok(()),
            false => Err(ACL_ERROR_STREAM_TASK_GROUP_INTR),
        }
    }
}
