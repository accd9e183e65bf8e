//! The runtime of the process. It owns all objects for which programs have handles: devices, contexts, streams, events, graphs and kernels.
//!
//! Their types are in other modules, which do not use the runtime. The runtime looks objects up, creates and destroys them, and handles calls that involve several
//! of them: `contexts` (with devices), `streams` (with events) and `graphs` (with captures).

use crate::capture::Captures;
use crate::clock::now_ns;
use crate::config::config;
use crate::context::{Context, Primary};
use crate::device::Device;
use crate::event::Event;
use crate::graph::{Group, Model};
use crate::handle::Handles;
use crate::hccl::Comm;
use crate::kernel::Kernels;
use crate::listeners::Listeners;
use crate::memory::Memory;
use crate::stream::Stream;
use crate::truth;
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

mod contexts;
mod graphs;
mod streams;

/// The runtime.
pub(crate) struct Runtime {
    /// The devices that the process sees, by user id.
    pub(crate) devices: Vec<Arc<Device>>,
    /// The primary context of each device.
    primaries: Vec<Mutex<Primary>>,
    pub(crate) contexts: Handles<Context>,
    streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) models: Handles<Model>,
    pub(crate) groups: Handles<Group>,
    pub(crate) comms: Handles<Comm>,
    pub(crate) kernels: Kernels,
    pub(crate) captures: Captures,
    pub(crate) memory: Memory,
    pub(crate) listeners: Listeners,
    /// True between `aclInit` and `aclFinalize`.
    pub(crate) initialized: AtomicBool,
    pub(crate) profiling: AtomicBool,
    /// The number of the last mstx range.
    pub(crate) ranges: AtomicU64,
}

/// Returns the runtime. The first call creates it.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(Runtime::new)
}

impl Runtime {
    fn new() -> Self {
        let (config, first_ns) = (config(), now_ns());
        let device = |(user, logical)| Arc::new(Device::new(config, user, logical, first_ns));
        let visible = (0..).zip(config.visible.iter().copied());
        let devices: Vec<Arc<Device>> = visible.map(device).collect();
        truth::truth(); // creates the file even if no task runs
        Self {
            primaries: devices.iter().map(|_| Mutex::default()).collect(),
            devices,
            contexts: Handles::new(1, ACL_ERROR_RT_CONTEXT_NULL).reused(config.reuse),
            streams: Handles::new(2, ACL_ERROR_RT_INVALID_HANDLE).reused(config.reuse),
            events: Handles::new(3, ACL_ERROR_RT_PARAM_INVALID),
            kernels: Kernels::new((4, 5)),
            models: Handles::new(6, ACL_ERROR_RT_PARAM_INVALID),
            comms: Handles::new(7, ACL_ERROR_INVALID_PARAM),
            groups: Handles::new(8, ACL_ERROR_RT_PARAM_INVALID),
            captures: Captures::default(),
            memory: Memory::default(),
            listeners: Listeners::default(),
            initialized: AtomicBool::new(false),
            profiling: AtomicBool::new(false),
            ranges: AtomicU64::new(0),
        }
    }

    /// Creates a communicator of a device.
    pub(crate) fn new_comm(&self, device: &Device, rank: u32, ranks: u32) -> Outcome<Arc<Comm>> {
        fail_if(rank >= ranks, ACL_ERROR_INVALID_PARAM)?;
        let new = |handle| Comm::new(handle, device, rank);
        Ok(self.comms.add(new))
    }
}
