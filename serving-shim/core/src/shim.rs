//! The process's own: which runtime times launches, its devices, the gate, what is paused.

use crate::ascend::AscendRuntime;
use crate::config::{Choice, Config};
use crate::counts::{Counts, InFlight, KernelCounts, add};
use crate::description::{Description, Kind};
use crate::device::Device;
use crate::gate::{Gate, News, Updates};
use crate::graphs::{Graphs, Work};
use crate::mspti::Mspti;
use crate::runtime::absent::Absent;
use crate::runtime::{DeviceRuntime, Graph, Stream, stream_cache, thread};
use sa_recorder::{Args, Level, Recorder, host, now_ns};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long an exit waits for the devices' threads.
const EXIT_WAIT_NS: u64 = 150_000_000;
/// How long a launch waits for another thread that makes the shim, and between two looks.
const MAKE_WAIT_NS: u64 = 1_000_000_000;
const MAKE_NAP: Duration = Duration::from_micros(50);
/// Most devices of a process.
const MAX_DEVICES: usize = 64;

/// Why a launch is not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Captured,
    CaptureUnknown,
    GraphUpdate,
    Paused,
    NoPair,
    NoDevice,
    Refused,
}

/// What times the launches of this process.
pub(crate) struct Shim {
    runtime: &'static dyn DeviceRuntime,
    /// Whether there is a runtime to time with.
    present: bool,
    devices: Box<[OnceLock<Device>]>,
    pub(crate) gate: Gate,
    pub(crate) updates: Updates,
    pub(crate) graphs: Graphs,
    pub(crate) counts: Counts,
    pub(crate) kernel_counts: KernelCounts,
    /// Launches that have an event behind them.
    pub(crate) under_way: InFlight,
    /// Records of what these run.
    pub(crate) records: InFlight,
    pub(crate) mspti: Mspti,
    /// Whether MSPTI is to be used.
    wants_mspti: bool,
    /// Whether captures are told by hooks, so that one that cannot be asked for is not missed.
    pub(crate) hooked: AtomicBool,
    ids: AtomicU64,
    /// Upper half of the ids in flows: two libraries with a shim each count by themselves.
    salt: u64,
    pub(crate) sample: u32,
    eager: AtomicU64,
    /// Sum of the counts that were told last.
    told: AtomicU64,
    told_kernels: AtomicU64,
}

static SHIM: OnceLock<Shim> = OnceLock::new();
/// Somebody makes it, or has made it.
static MAKING: AtomicBool = AtomicBool::new(false);
/// Times nothing. For who has waited long for the shim: who makes it loads libraries, and may wait for whoever loads others, or for what their constructors wait for. Also that of a child
/// whose parent was making its own at the fork, and never ends doing so here.
static MEANWHILE: OnceLock<Shim> = OnceLock::new();
/// Other profilers that have been started, whether launches are recorded yet or not.
static PROFILERS: AtomicUsize = AtomicUsize::new(0);
/// In the child of a fork the runtime, its threads and ours are gone.
static FORKED: AtomicBool = AtomicBool::new(false);

impl std::fmt::Debug for Shim {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Shim")
            .field("present", &self.present)
            .finish_non_exhaustive()
    }
}

extern "C" fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Registered several times: the last one must come behind what MSPTI registers, so that it runs before that. The first call counts.
extern "C" fn at_exit() {
    static BEGAN: AtomicBool = AtomicBool::new(false);
    if let Some(shim) = Shim::existing()
        && !BEGAN.swap(true, Ordering::AcqRel)
    {
        shim.devices().for_each(Device::end);
        let end_ns = now_ns() + EXIT_WAIT_NS;
        shim.devices().for_each(|device| device.await_end(end_ns));
        if shim.wants_mspti {
            shim.mspti.end(now_ns() + EXIT_WAIT_NS);
        }
        // A device's thread that was too slow shows no more.
        add(&shim.counts.unresolved, shim.under_way.give_up());
        add(&shim.kernel_counts.missing, shim.records.give_up());
        shim.tell_counts();
    }
}

impl Shim {
    /// The shim of this process; made at the first call. In the child of a fork of a process that had one it times nothing.
    pub(crate) fn get() -> &'static Shim {
        if let Some(shim) = SHIM.get() {
            return shim;
        }
        if Shim::is_forked() {
            return Shim::meanwhile();
        }
        if MAKING.swap(true, Ordering::AcqRel) {
            return Shim::awaited();
        }
        let _ = Recorder::get().is_main(); // what is registered later runs earlier at the exit
        host::run_after_fork(after_fork);
        let made = Shim::of(&Config::from_lookup(host::variable));
        let shim = SHIM.get_or_init(|| made);
        if thread::unnoticed(shim.runtime, || shim.runtime.watch()) {
            stream_cache::rely_on_runtime();
        }
        host::run_at_exit(at_exit);
        shim.use_mspti();
        shim
    }

    /// The shim that another thread is making, if it comes about.
    fn awaited() -> &'static Shim {
        static HANGS: AtomicBool = AtomicBool::new(false);
        let end_ns = now_ns() + MAKE_WAIT_NS;
        while SHIM.get().is_none() && !HANGS.load(Ordering::Relaxed) {
            if now_ns() > end_ns {
                HANGS.store(true, Ordering::Relaxed); // nobody waits a second time
            }
            host::sleep(MAKE_NAP);
        }
        SHIM.get().unwrap_or_else(Shim::meanwhile)
    }

    fn meanwhile() -> &'static Shim {
        MEANWHILE.get_or_init(|| Shim::with(&Absent, false, 1))
    }

    /// The shim, if there is one already and its runtime is this process's.
    pub(crate) fn existing() -> Option<&'static Shim> {
        SHIM.get().filter(|_| !Shim::is_forked())
    }

    /// Whether this is the child of a fork of a process that had a shim: there is no runtime in it.
    pub(crate) fn is_forked() -> bool {
        FORKED.load(Ordering::Relaxed)
    }

    fn of(config: &Config) -> Shim {
        config
            .warnings
            .iter()
            .for_each(|warning| host::warn_once(warning));
        let found = match config.choice {
            Choice::Off => Ok(None),
            Choice::Sim => AscendRuntime::simulator().map(Some),
            Choice::Auto | Choice::Ascend => AscendRuntime::vendor().map(Some),
        };
        let found = found.unwrap_or_else(|error| {
            host::warn_once(&format!("launches are recorded on the host alone: {error}"));
            None
        });
        match found {
            Some(runtime) => Shim {
                wants_mspti: config.mspti,
                ..Shim::with(Box::leak(Box::new(runtime)), true, config.sample)
            },
            None => Shim::with(&Absent, false, config.sample),
        }
    }

    pub(crate) fn with(runtime: &'static dyn DeviceRuntime, present: bool, sample: u32) -> Shim {
        Shim {
            runtime,
            present,
            devices: (0..MAX_DEVICES).map(|_| OnceLock::new()).collect(),
            gate: Gate::default(),
            updates: Updates::default(),
            graphs: Graphs::default(),
            counts: Counts::default(),
            kernel_counts: KernelCounts::default(),
            under_way: InFlight::default(),
            records: InFlight::default(),
            mspti: Mspti::default(),
            wants_mspti: false,
            hooked: AtomicBool::new(false),
            ids: AtomicU64::new(1),
            salt: host::random() << 40,
            sample,
            eager: AtomicU64::new(0),
            told: AtomicU64::new(0),
            told_kernels: AtomicU64::new(0),
        }
    }

    pub(crate) fn runtime(&self) -> &'static dyn DeviceRuntime {
        self.runtime
    }

    /// The runtime, if this process has one.
    pub(crate) fn own_runtime(&self) -> Option<&'static dyn DeviceRuntime> {
        (self.present && !Shim::is_forked()).then_some(self.runtime)
    }

    /// The runtime, if launches are to be timed now.
    pub(crate) fn timing_runtime(&self) -> Result<&'static dyn DeviceRuntime, Refusal> {
        let runtime = self.own_runtime().ok_or(Refusal::NoDevice)?;
        if PROFILERS.load(Ordering::Relaxed) > 0 {
            return Err(Refusal::Paused);
        }
        Ok(runtime)
    }

    /// The device that the program counts as `user`; made at the first call.
    pub(crate) fn device(&'static self, user: i32) -> Option<&'static Device> {
        let place = self.devices.get(usize::try_from(user).ok()?)?;
        Some(place.get_or_init(|| Device::new(self.runtime, user)))
    }

    fn existing_device(&self, user: i32) -> Option<&Device> {
        self.devices.get(usize::try_from(user).ok()?)?.get()
    }

    /// The devices in use.
    pub(crate) fn devices(&'static self) -> impl Iterator<Item = &'static Device> {
        self.devices.iter().filter_map(OnceLock::get)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of the flow of a launch.
    pub(crate) fn flow_id(&self, launch: u64) -> u64 {
        self.salt | launch & ((1 << 40) - 1)
    }

    /// Whether the next eager launch is one of those that are timed, and for how many it stands.
    pub(crate) fn samples(&self) -> Option<u32> {
        if self.sample == 1 || Recorder::get().includes(Level::Verbose) {
            return Some(1);
        }
        let number = self.eager.fetch_add(1, Ordering::Relaxed);
        // In no step with the program, which may repeat itself after any number of launches.
        let drawn = mixed(number.wrapping_add(self.salt)).is_multiple_of(self.sample.into());
        (number == 0 || drawn).then_some(self.sample)
    }

    /// Has MSPTI record kernels, if that is asked for and nobody else has it.
    pub(crate) fn use_mspti(&self) {
        let Some(runtime) = self.own_runtime().filter(|_| self.may_use_mspti()) else {
            return;
        };
        // It may call the runtime in its turn.
        let start = || {
            let wanted = || self.may_use_mspti();
            self.mspti.start(runtime.is_simulated(), at_exit, wanted)
        };
        match thread::unnoticed(runtime, start) {
            Ok(Some(recorded)) => {
                let args = Args::new().with("collectives", recorded.collectives);
                tell("mspti", &args);
            }
            Ok(None) => {}
            Err(why) => {
                tell("mspti_unavailable", &Args::new().with("why", &*why));
                host::warn_once(&format!("device times come from event pairs alone: {why}"));
            }
        }
    }

    fn may_use_mspti(&self) -> bool {
        let is_recorded = Recorder::get().includes(Level::Kernel);
        self.wants_mspti && is_recorded && PROFILERS.load(Ordering::Acquire) == 0
    }

    /// What is to be done for MSPTI from time to time.
    pub(crate) fn tend_mspti(&self) {
        if self.may_use_mspti() {
            self.use_mspti();
            self.mspti.read();
        } else if self.mspti.is_running() {
            self.give_mspti_back();
        }
    }

    fn give_mspti_back(&self) {
        if let Some(runtime) = self.own_runtime().filter(|_| self.wants_mspti) {
            thread::unnoticed(runtime, || self.mspti.stop(|| self.may_use_mspti()));
        }
    }

    /// Whether there will be records of such a launch that is made now.
    pub(crate) fn looks_for_kernels(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Graph(_) | Kind::Kernel) && self.mspti.is_running()
    }

    fn close_gate(&self, stream: Stream, graph: Graph) {
        let news = self.gate.close(stream, self.runtime.context().ok(), graph);
        if matches!(news, News::Graph | News::Capture) {
            self.graphs.forget(graph); // what another graph of that name had
        }
        if news == News::Capture && thread::is_interposed() && self.sample > 1 {
            self.graphs.spoil(graph); // launches before this one were left out unasked
        }
        if news != News::Nothing
            && let Ok(user) = self.runtime.device()
            && let Some(device) = self.existing_device(user)
        {
            device.wake();
        }
    }

    /// Refuses while anything is being captured, and asks whether this stream is. What is launched into a captured stream becomes part of its graph.
    pub(crate) fn look_for_capture(
        &self,
        stream: Stream,
        description: &Description,
    ) -> Result<(), Refusal> {
        let captured = self.runtime.capture(stream);
        if self.gate.is_closed() && captured == Ok(None) {
            // Captures of this context that have ended behind the hooks' back; the others are asked by their devices' threads.
            self.gate
                .ask_again(self.runtime, self.runtime.context().ok());
        }
        match captured {
            Ok(Some(graph)) => {
                self.close_gate(stream, graph);
                self.note_captured(graph, description);
                Err(Refusal::Captured)
            }
            Ok(None) if self.gate.is_closed() => Err(Refusal::Captured),
            Ok(None) => Ok(()),
            Err(_) if self.gate.is_closed() => {
                if let Some(graph) = self.gate.only_graph() {
                    self.note_captured(graph, description);
                }
                Err(Refusal::Captured)
            }
            Err(_) if self.hooked.load(Ordering::Relaxed) => Ok(()),
            Err(_) => Err(Refusal::CaptureUnknown),
        }
    }

    fn note_captured(&self, graph: Graph, description: &Description) {
        let work = match description.kind {
            Kind::Memcpy => return,
            Kind::Kernel => Work::Kernel,
            Kind::Collective => Work::Collective,
            _ => Work::Other,
        };
        self.graphs.add(graph, &description.name.shown, work);
    }

    /// Tells what became of the launches so far, if that has changed.
    pub(crate) fn tell_counts(&self) {
        tell_series("launches", self.counts.series(), &self.told);
        let kernels = self.kernel_counts.series();
        tell_series("kernel records", kernels, &self.told_kernels);
    }
}

/// Tells counts, if their sum has changed.
fn tell_series(name: &str, (series, sum): (Args, u64), told: &AtomicU64) {
    let recorder = Recorder::get();
    if !recorder.includes(Level::Kernel) || told.swap(sum, Ordering::Relaxed) == sum {
        return;
    }
    if let Some(thread) = recorder.thread_track(host::tid()) {
        thread.counter(Level::Kernel, name, now_ns(), &series);
    }
}

/// Another profiler was started: while one is at work nothing of ours stands in the streams.
pub(crate) fn pause(by: &str) {
    if PROFILERS.fetch_add(1, Ordering::AcqRel) == 0
        && let Some(shim) = Shim::existing()
    {
        shim.give_mspti_back();
        tell("device_timing_paused", &Args::new().with("by", by));
    }
}

/// It was stopped.
pub(crate) fn resume(by: &str) {
    let one_less = |count: usize| count.checked_sub(1);
    let order = Ordering::Relaxed;
    if PROFILERS.fetch_update(order, order, one_less) == Ok(1)
        && let Some(shim) = Shim::existing()
    {
        shim.use_mspti();
        tell("device_timing_resumed", &Args::new().with("by", by));
    }
}

/// Tells of the timing itself, as an instant.
pub(crate) fn tell(name: &str, args: &Args) {
    Recorder::get().instant(Level::Kernel, "sa_profile", name, args);
}

/// A number that looks drawn, for each number another.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launch;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    /// Whether a call in the child of a fork returns, although its parent held a lock at the fork.
    fn assert_returns_in_a_child(
        hold: impl FnOnce(&Shim, &mut dyn FnMut()) + Send + 'static,
        call: impl FnOnce(&'static Shim) + Send + 'static,
    ) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock();
        let shim: &'static Shim = Box::leak(Box::new(Shim::with(&Absent, false, 1)));
        let (holds, is_held) = channel();
        std::thread::spawn(move || {
            hold(shim, &mut || {
                holds.send(()).unwrap();
                loop {
                    std::thread::park();
                }
            });
        });
        is_held.recv().unwrap();
        after_fork();
        let (returns, returned) = channel();
        std::thread::spawn(move || {
            call(shim);
            returns.send(()).unwrap();
        });
        let returned = returned.recv_timeout(Duration::from_secs(30));
        FORKED.store(false, Ordering::Relaxed);
        assert!(returned.is_ok(), "it waits for ever");
    }

    #[test]
    fn issue_19_a_replay_in_a_forked_child_takes_no_lock_that_its_parent_held() {
        let replay = |shim| {
            let description = Description {
                kind: Kind::Graph(Graph(1)),
                name: "replay".into(),
                stream: Stream(1),
                grid: 0,
                bytes: 0,
            };
            Launch::open(shim, description, 1).end(0);
        };
        assert_returns_in_a_child(|shim, act| shim.graphs.hold(act), replay);
    }

    #[test]
    fn a_launch_that_sampling_leaves_out_takes_no_lock_in_a_forked_child() {
        let hold = |shim: &Shim, act: &mut dyn FnMut()| {
            shim.updates.begin(Stream(1), None);
            shim.updates.hold(act);
        };
        assert_returns_in_a_child(hold, |shim| crate::hooks::leave_out(shim, Stream(1)));
    }
}
