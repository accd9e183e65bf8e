//! A launch whose device times are not known yet.

use crate::description::Description;
use crate::graphs::Kernels;
use crate::pool::Pair;
use crate::runtime::Context;
use sa_recorder::Args;
use std::sync::Arc;

/// A launch whose end is in the stream.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) launched: Launched,
    pub(crate) context: Context,
    pub(crate) pair: Pair,
}

/// The host's knowledge of a launch. Times are on the clock of [`sa_recorder::now_ns`].
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) description: Description,
    /// Arguments that the caller has added.
    pub(crate) args: Args,
    /// Number of the launch in this process.
    pub(crate) id: u64,
    /// Id of the flow from the host's span to the slice.
    pub(crate) flow: u64,
    pub(crate) stream_id: i32,
    /// The thread that launched; 0 until the call has returned.
    pub(crate) tid: u32,
    /// Times at which the start event was requested, the call began and the call returned.
    pub(crate) asked_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) returned_ns: u64,
    /// Number of launches that this one represents.
    pub(crate) stands_for: u32,
    /// Kernels of the replayed graph, which may be destroyed before the replay has ended.
    pub(crate) kernels: Option<Arc<Kernels>>,
}
