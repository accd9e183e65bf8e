//! The object that times launches: it numbers them, selects a sample, finds their device, and detects captures.

use crate::description::{Description, Kind};
use crate::device::Device;
use crate::gate::{News, is_profiled};
use crate::graphs::Graphs;
use crate::runtime::ascend::Runtime;
use crate::runtime::{Graph, Stream, thread};
use crate::tally::Fate;
use crate::timing::Timing;
use sa_recorder::{Level, Recorder, host};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum number of devices of a process.
const MAX_DEVICES: usize = 64;

/// True in the child of a fork, where the runtime, its threads and ours do not exist.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Records that this process was forked. Runs in the child of a fork.
pub(crate) extern "C" fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Returns true in a forked child of a process that timed launches. The device runtime does not work there.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The object that times the launches of a process.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) timing: Timing,
    /// The devices in use, by the program's number.
    devices: Box<[OnceLock<Device>]>,
    pub(crate) graphs: Graphs,
    /// True once a hook has reported a capture. From then on, hooks report every capture, even if the runtime cannot be queried.
    pub(crate) hooked: AtomicBool,
    ids: AtomicU64,
    /// Upper half of the flow ids, because two libraries with a shim each count separately.
    salt: u64,
    /// Number of eager launches for each one that is timed.
    sample: u32,
    eager: AtomicU64,
}

impl Shim {
    pub(crate) fn new(timing: Timing, sample: u32) -> Shim {
        Shim {
            timing,
            devices: (0..MAX_DEVICES).map(|_| OnceLock::new()).collect(),
            graphs: Graphs::default(),
            hooked: AtomicBool::new(false),
            ids: AtomicU64::new(1),
            salt: host::random() << 40,
            sample,
            eager: AtomicU64::new(0),
        }
    }

    /// Returns the device runtime, if this process has one and was not forked.
    pub(crate) fn own_runtime(&self) -> Option<&Runtime> {
        let runtime = &self.timing.runtime;
        (!runtime.is_absent() && !is_forked()).then_some(runtime)
    }

    /// Returns the device runtime if launches should be timed now, otherwise the reason why not.
    pub(crate) fn timing_runtime(&self) -> Result<&Runtime, Fate> {
        let runtime = self.own_runtime().ok_or(Fate::NoDevice)?;
        if is_profiled() {
            return Err(Fate::Paused);
        }
        Ok(runtime)
    }

    /// Returns the device to which the program gives the number `user`. The first call creates its state. Returns `None` if the number is too large.
    pub(crate) fn device(&'static self, user: i32) -> Option<&'static Device> {
        let place = self.devices.get(usize::try_from(user).ok()?)?;
        Some(place.get_or_init(|| Device::new(&self.timing, user)))
    }

    /// Returns the devices on which launches were timed.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter_map(OnceLock::get)
    }

    /// Returns the id of a new launch, and the id of its flow arrow.
    pub(crate) fn next_ids(&self) -> (u64, u64) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        (id, self.salt | id & ((1 << 40) - 1))
    }

    /// Decides at random if the next eager launch (of a kernel, operator or copy) is timed. Returns the number of launches that it then represents, or `None`
    /// if it is skipped.
    pub(crate) fn draw(&self) -> Option<u32> {
        if self.sample == 1 || Recorder::get().includes(Level::Verbose) {
            return Some(1);
        }
        let number = self.eager.fetch_add(1, Ordering::Relaxed);
        // At random, because the program may repeat itself after any number of launches.
        let drawn = mixed(number.wrapping_add(self.salt)).is_multiple_of(self.sample.into());
        (number == 0 || drawn).then_some(self.sample)
    }

    /// Fails while any stream is being captured into a graph, because nothing can be timed then. Queries the stream of this launch. A launch into a captured
    /// stream is added to its graph.
    pub(crate) fn check_for_capture(&self, description: &Description) -> Result<(), Fate> {
        let Timing { runtime, gate, .. } = &self.timing;
        let captured = runtime.capture(description.stream);
        if gate.is_closed() && captured == Ok(None) {
            // Captures of this context may have ended without a hook. The devices' threads check the other ones.
            gate.query_again(runtime, runtime.context().ok());
        }
        match captured {
            Ok(Some(graph)) => {
                self.close_gate(description.stream, graph);
                self.record_captured(graph, description);
                Err(Fate::Captured)
            }
            Ok(None) if gate.is_closed() => Err(Fate::Captured),
            Ok(None) => Ok(()),
            Err(_) if gate.is_closed() => {
                if let Some(graph) = gate.only_graph() {
                    self.record_captured(graph, description);
                }
                Err(Fate::Captured)
            }
            Err(_) if self.hooked.load(Ordering::Relaxed) => Ok(()),
            Err(_) => Err(Fate::CaptureUnknown),
        }
    }

    fn close_gate(&self, stream: Stream, graph: Graph) {
        let Timing { runtime, gate, .. } = &self.timing;
        let news = gate.close(stream, runtime.context().ok(), Some(graph));
        if matches!(news, News::Graph | News::Capture) {
            self.graphs.forget(graph); // the entry belongs to an earlier graph with this handle
        }
        if news == News::Capture && thread::is_interposed() && self.sample > 1 {
            self.graphs.spoil(graph); // sampling skipped the earlier launches of this capture
        }
        if news != News::Nothing
            && let Ok(user) = runtime.device()
            && let Some(device) = self.devices().find(|one| one.pool.user == user)
        {
            device.wake();
        }
    }

    fn record_captured(&self, graph: Graph, description: &Description) {
        let Description { kind, name, .. } = description;
        if *kind != Kind::Memcpy {
            self.graphs.add(graph, &name.shown);
        }
    }
}

/// Mixes the bits of a number, so that successive numbers give results that look random.
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
    use std::time::Duration;

    /// Checks that a call in the child of a fork returns, although its parent held a lock at the fork.
    fn assert_returns_in_a_child(
        hold: impl FnOnce(&Shim, &mut dyn FnMut()) + Send + 'static,
        call: impl FnOnce(&'static Shim) + Send + 'static,
    ) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock();
        let shim: &'static Shim = Box::leak(Box::new(Shim::new(Timing::default(), 1)));
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
            shim.timing.gate.begin_update(Stream(1), None);
            shim.timing.gate.hold(act);
        };
        assert_returns_in_a_child(hold, |shim| crate::hooks::leave_out(shim, Stream(1)));
    }
}
