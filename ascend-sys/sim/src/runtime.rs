//! The one runtime of the process: what the environment said, the devices, and all that programs hold handles of.

use crate::capture::Captures;
use crate::clock::now_ns;
use crate::config::Config;
use crate::context::Context;
use crate::device::Device;
use crate::event::Event;
use crate::faults::Site;
use crate::graph::{Group, Model, Task};
use crate::handle::Handles;
use crate::hccl::Comm;
use crate::kernel::{Binary, Function, Runs, Stubs};
use crate::listeners::Listeners;
use crate::memory::Memory;
use crate::mspti::Mspti;
use crate::refuse;
use crate::report::Reports;
use crate::stream::Stream;
use crate::truth::Truth;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Everything there is.
pub(crate) struct Runtime {
    pub(crate) config: Config,
    /// Those the process sees, by the id it uses.
    pub(crate) devices: Vec<Arc<Device>>,
    pub(crate) truth: Option<Truth>,
    pub(crate) contexts: Handles<Context>,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) binaries: Handles<Binary>,
    pub(crate) functions: Handles<Function>,
    pub(crate) models: Handles<Model>,
    pub(crate) tasks: Handles<Task>,
    pub(crate) comms: Handles<Comm>,
    pub(crate) groups: Handles<Group>,
    pub(crate) stubs: Stubs,
    pub(crate) runs: Runs,
    pub(crate) captures: Captures,
    pub(crate) memory: Memory,
    pub(crate) listeners: Listeners,
    pub(crate) reports: Reports,
    pub(crate) mspti: Mspti,
    /// Between `aclInit` and `aclFinalize`.
    pub(crate) initialized: AtomicBool,
    pub(crate) profiling: AtomicBool,
    /// The last range of mstx.
    pub(crate) ranges: AtomicU64,
}

/// The runtime; the first call makes it.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| match Config::from_env() {
        Ok(config) => Runtime::new(config),
        Err(refused) => refuse(&refused.to_string()),
    })
}

impl Runtime {
    fn new(config: Config) -> Self {
        let first_ns = now_ns();
        let device = |(user, logical)| Arc::new(Device::new(&config, user, logical, first_ns));
        let devices = (0..)
            .zip(config.visible.iter().copied())
            .map(device)
            .collect();
        let truth = config.truth.as_deref().map(|path| {
            Truth::open(path, config.truth_through)
                .unwrap_or_else(|error| refuse(&format!("{}: {error}", path.display())))
        });
        Self {
            devices,
            truth,
            contexts: Handles::new(1).reused(config.reuse),
            streams: Handles::new(2).reused(config.reuse),
            events: Handles::new(3),
            binaries: Handles::new(4),
            functions: Handles::new(5),
            models: Handles::new(6),
            tasks: Handles::new(7),
            comms: Handles::new(8),
            groups: Handles::new(9),
            stubs: Stubs::default(),
            runs: Runs::default(),
            captures: Captures::default(),
            memory: Memory::new(config.memory_bytes),
            listeners: Listeners::default(),
            reports: Reports::default(),
            mspti: Mspti::new(config.mspti, || {
                let faults = &runtime().config.faults;
                faults.value(Site::MsptiRecord).is_some()
            }),
            initialized: AtomicBool::new(false),
            profiling: AtomicBool::new(false),
            ranges: AtomicU64::new(0),
            config,
        }
    }
}
