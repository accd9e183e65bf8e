//! What a task does.

use crate::effect::Effect;
use crate::event::Event;
use crate::graph::Replay;
use crate::kernel::Function;
use crate::report::Callback;
use ascend_sys::types::{
    MSPTI_ACTIVITY_KIND_COMMUNICATION, MSPTI_ACTIVITY_KIND_KERNEL, msptiActivityKind,
};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) enum Work {
    /// A kernel: takes its time, and does something if it is one of the simulator's own.
    Kernel {
        function: Arc<Function>,
        effect: Option<Effect>,
    },
    /// A copy or a memset: does it, and takes the time of its bytes.
    Copy { name: &'static str, effect: Effect },
    /// A collective: takes a fixed time.
    Collective {
        name: &'static str,
        /// The communicator's name.
        comm: Arc<str>,
        effect: Option<Effect>,
    },
    /// Stamps an event, for the time it was recorded.
    Record { event: Arc<Event>, record: u64 },
    /// Waits for what an event was recorded for.
    Wait { event: Arc<Event>, record: u64 },
    /// Makes an event one that was not recorded: takes back what the host had recorded when it submitted this. None in a graph, which runs again and again.
    Reset {
        event: Arc<Event>,
        covers: Option<u64>,
    },
    /// A record or wait of a captured event: the order of the graph has taken care of it.
    Ordered { name: &'static str },
    /// Calls the host.
    Callback(Callback),
    /// A mark of a profiler.
    Mark { name: Arc<str> },
    /// Runs a graph.
    Replay(Arc<Replay>),
}

impl Work {
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Self::Kernel { .. })
    }

    /// The kind of its records by MSPTI, if it has some.
    pub(crate) fn record_kind(&self) -> Option<msptiActivityKind> {
        match self {
            Self::Kernel { .. } => Some(MSPTI_ACTIVITY_KIND_KERNEL),
            Self::Collective { .. } => Some(MSPTI_ACTIVITY_KIND_COMMUNICATION),
            _ => None,
        }
    }

    /// Its kind and name in the truth.
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
            Self::Replay(replay) => ("replay", &replay.name),
        }
    }

    /// It will not be done: who waits for it goes on.
    pub(crate) fn drop_undone(&self) {
        match self {
            Self::Record { event, record } => event.drop_record(*record),
            Self::Wait { event, .. } => event.drop_wait(),
            _ => {}
        }
    }
}
