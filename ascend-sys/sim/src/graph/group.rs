//! A group of a graph's kernels that a program may update: what it launches in an update takes their places, one after the other, and runs with the graph.

use super::Model;
use crate::Outcome;
use crate::device::lock;
use crate::handle::Handle;
use crate::runtime::runtime;
use crate::work::Work;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

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
