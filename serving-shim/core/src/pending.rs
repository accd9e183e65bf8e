//! A launch whose device time is not known yet.

use crate::description::Description;
use crate::graphs::{Kernels, RecordCount};
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

/// What is known of it without the device.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) description: Description,
    pub(crate) args: Args,
    pub(crate) id: u64,
    pub(crate) stream_id: i32,
    /// The thread that launched.
    pub(crate) tid: u32,
    pub(crate) asked_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) returned_ns: u64,
    pub(crate) stands_for: u32,
    pub(crate) kernels: Option<Arc<Kernels>>,
    /// MSPTI was recording: there are so many records of what it runs, at least.
    pub(crate) expected: Option<RecordCount>,
}

impl Launched {
    /// How many records are expected of what it runs, at least.
    pub(crate) fn records(&self) -> u64 {
        self.expected.map_or(0, RecordCount::sum)
    }
}
