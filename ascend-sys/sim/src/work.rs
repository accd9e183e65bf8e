//! The work of a task, in a stream or in a captured graph.

use crate::effect::Effect;
use crate::event::Event;
use crate::kernel::Function;
use ascend_sys::types::{
    MSPTI_ACTIVITY_KIND_COMMUNICATION, MSPTI_ACTIVITY_KIND_KERNEL, msptiActivityKind,
};
use std::ffi::c_void;
use std::sync::Arc;

/// A call of the host, which the stream's own thread makes.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    /// An address of the program's.
    pub(crate) data: usize,
}

impl Callback {
    pub(crate) fn call(self) {
        // SAFETY: the one who submitted the callback vouches for it and its data until it was called.
        unsafe { (self.function)(std::ptr::with_exposed_provenance_mut(self.data)) };
    }
}

/// The work of a task.
#[derive(Clone)]
pub(crate) enum Work {
    /// A kernel: takes its time, and has an effect if it is one of the simulator's own.
    Kernel {
        function: Arc<Function>,
        effect: Option<Effect>,
    },
    /// A copy or a memset: has its effect, and takes the time of its bytes.
    Copy { name: &'static str, effect: Effect },
    /// A collective: takes a fixed time.
    Collective {
        name: &'static str,
        /// The communicator's name.
        comm: Arc<str>,
        effect: Option<Effect>,
    },
    /// Stamps an event, for this record of it.
    Record { event: Arc<Event>, record: u64 },
    /// Waits for this record of an event.
    Wait { event: Arc<Event>, record: u64 },
    /// Makes an event one that was not recorded: takes back the records up to `covers`, the host's last one at submission. In a graph, which runs again and
    /// again, it is `None`.
    Reset {
        event: Arc<Event>,
        covers: Option<u64>,
    },
    /// A record or wait of a captured event: the order of the graph already has its effect.
    Ordered { name: &'static str },
    /// Calls the host.
    Callback(Callback),
    /// A mark of a profiler.
    Mark { name: Arc<str> },
    /// Runs a graph.
    Replay(Arc<Replay>),
}

/// A task in a capture, and the index of the captured stream that it came from.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) part: usize,
    pub(crate) work: Work,
    /// MSPTI's number of its launch; 0 if it has none.
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

    /// Returns the kind of its records by MSPTI, if it has any.
    pub(crate) fn record_kind(&self) -> Option<msptiActivityKind> {
        match self {
            Self::Kernel { .. } => Some(MSPTI_ACTIVITY_KIND_KERNEL),
            Self::Collective { .. } => Some(MSPTI_ACTIVITY_KIND_COMMUNICATION),
            _ => None,
        }
    }

    /// Returns its kind and name in the truth.
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

    /// Lets its waiters go on, because it will not be done.
    pub(crate) fn drop_undone(&self) {
        match self {
            Self::Record { event, record } => event.drop_record(*record),
            Self::Wait { event, .. } => event.drop_wait(),
            _ => {}
        }
    }
}
