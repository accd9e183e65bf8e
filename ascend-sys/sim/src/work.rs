//! The work of a task, in a stream or in a captured graph.

use crate::effect::Effect;
use crate::event::Event;
use crate::kernel::Function;
use ascend_sys::types::{
    MSPTI_ACTIVITY_KIND_COMMUNICATION, MSPTI_ACTIVITY_KIND_KERNEL, msptiActivityKind,
};
use std::ffi::c_void;
use std::sync::Arc;

/// A function of the program that the stream's thread calls.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    /// Address of the callback's data.
    pub(crate) data: usize,
}

impl Callback {
    pub(crate) fn call(self) {
        // SAFETY: the program that submitted the callback guarantees that it and its data are valid until the call.
        unsafe { (self.function)(std::ptr::with_exposed_provenance_mut(self.data)) };
    }
}

/// The work of a task.
#[derive(Clone)]
pub(crate) enum Work {
    /// A kernel, which has a duration, and an effect if it is the simulator's own kernel.
    Kernel {
        function: Arc<Function>,
        effect: Option<Effect>,
    },
    /// A copy or a memset, with a duration that depends on the number of bytes.
    Copy { name: &'static str, effect: Effect },
    /// A collective, with a fixed duration.
    Collective {
        name: &'static str,
        /// The communicator's name.
        comm: Arc<str>,
        effect: Option<Effect>,
    },
    /// A record of an event, which gets a timestamp.
    Record { event: Arc<Event>, record: u64 },
    /// A wait for a record of an event.
    Wait { event: Arc<Event>, record: u64 },
    /// A reset of an event, which cancels the records up to `covers`, the host's last one at submission. In a graph, which runs repeatedly, `covers` is `None`.
    Reset {
        event: Arc<Event>,
        covers: Option<u64>,
    },
    /// A record of or wait for a captured event, which is already part of the graph's order.
    Ordered { name: &'static str },
    /// A call of a function on the host.
    Callback(Callback),
    /// A mark of a profiler.
    Mark { name: Arc<str> },
    /// A run of a graph.
    Replay(Arc<Replay>),
}

/// A task in a capture, with the index of its captured stream.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) part: usize,
    pub(crate) work: Work,
    /// MSPTI's correlation id of the launch, or 0 if it has no record.
    pub(crate) correlation: u64,
}

/// One run of a graph.
pub(crate) struct Replay {
    /// The id of the graph.
    pub(crate) model: u32,
    pub(crate) tasks: Arc<[Captured]>,
    /// The ids of the graph's own streams, by part.
    pub(crate) streams: Vec<i32>,
}

impl Work {
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Self::Kernel { .. })
    }

    /// Returns the kind of the work's MSPTI records, if it has any.
    pub(crate) fn record_kind(&self) -> Option<msptiActivityKind> {
        match self {
            Self::Kernel { .. } => Some(MSPTI_ACTIVITY_KIND_KERNEL),
            Self::Collective { .. } => Some(MSPTI_ACTIVITY_KIND_COMMUNICATION),
            _ => None,
        }
    }

    /// Returns the kind and the name for the truth.
    pub(crate) fn names(&self) -> (&'static str, &str) {
        match self {
            Self::Kernel { function, .. } => ("kernel", &function.name),
            Self::Copy { name, .. } => ("memcpy", name),
            Self::Collective { name, .. } => ("hccl", name),
            Self::Record { .. } => ("event_record", ""),
            Self::Wait { .. } => ("event_wait", ""),
            Self::Reset { .. } => ("event_reset", ""),
            Self::Ordered { name } => (name, "captured"),
            Self::Callback(_) => ("callback", ""),
            Self::Mark { name } => ("mark", name),
            Self::Replay(_) => ("replay", ""),
        }
    }

    /// Releases the waiters of work that will not be done.
    pub(crate) fn drop_undone(&self) {
        match self {
            Self::Record { event, record } => event.drop_record(*record),
            Self::Wait { event, .. } => event.drop_wait(),
            _ => {}
        }
    }
}
