//! Samples of what Python runs: the stacks of all threads, every few milliseconds, as slices on separate tracks. For programs that do not use the package.
//!
//! **Data flow.** `thread` wakes up, holds the GIL while it takes one sample (`snapshot`: stacks of frames that `codes` describes), releases it, and passes the sample
//! to `thread_tracks`. There a frame becomes a slice, from the first sample that contains it to the first one that does not.
//!
//! **Cost for the host.** The GIL, for as long as it takes to read a sample. After two long samples in a row, the thread sleeps fifty times as long as the shorter one took.
//! While nothing is recorded, it takes no samples.
//!
//! **Forks.** The sampling thread must not run while the host forks. Several threads of the host may fork at once, so it starts again after the last of these forks.

mod codes;
mod snapshot;
mod thread;
mod thread_tracks;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sa_recorder::host;

/// Maximum time that the end of a process waits for the thread, because its file system may hang.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Interval of checks whether the thread has ended.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// The settings of sampling, fixed when the process starts.
#[derive(Debug)]
struct Settings {
    interval: Duration,
    process_name: String,
}

/// A thread that samples, or has been asked to end.
struct Running {
    /// The process of the thread. A forked child has none of its parent's threads.
    pid: u32,
    thread: host::Thread,
    state: Arc<State>,
}

impl Running {
    /// Asks the sampling thread to end. Returns its state, which shows when it is gone, or `None` if the thread belongs to another process.
    fn end(&self) -> Option<Arc<State>> {
        self.state.should_end.store(true, Ordering::Release);
        self.thread.unpark();
        self.is_here().then(|| Arc::clone(&self.state))
    }

    fn samples(&self) -> bool {
        self.is_here() && !self.state.should_end.load(Ordering::Acquire)
    }

    fn is_here(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// The state of sampling in this process.
struct Sampling {
    is_wanted: bool,
    /// Number of forks in progress.
    forks: u32,
    running: Option<Running>,
}

/// State that the sampling thread shares with the thread that ends it.
#[derive(Debug, Default)]
struct State {
    should_end: AtomicBool,
    has_ended: AtomicBool,
    /// Kernel id of the thread, once it runs.
    tid: AtomicU32,
}

impl State {
    /// Returns true if the sampling thread has ended and the Linux kernel no longer lists it. The host may check that: Python does when it forks.
    fn is_gone(&self) -> bool {
        let tid = self.tid.load(Ordering::Relaxed);
        self.has_ended.load(Ordering::Acquire)
            && !Path::new(&format!("/proc/self/task/{tid}")).exists()
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Locked only briefly, by threads that hold the GIL, so that it is never locked during a fork.
static SAMPLING: Mutex<Sampling> = Mutex::new(Sampling {
    is_wanted: false,
    forks: 0,
    running: None,
});

fn sampling() -> MutexGuard<'static, Sampling> {
    SAMPLING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampling {
    /// Starts the sampling thread if it should run but does not.
    fn start(&mut self) -> std::io::Result<()> {
        let is_there = self.running.as_ref().is_some_and(Running::samples);
        match SETTINGS.get() {
            Some(settings) if self.is_wanted && self.forks == 0 && !is_there => {
                self.running = Some(spawn(settings)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Starts to sample the stacks of all Python threads every `interval_ns`, and sets the name of the process in the trace.
///
/// # Errors
/// Returns an error if the thread cannot be created.
#[pyfunction]
#[pyo3(signature = (interval_ns, process_name, /))]
pub(crate) fn begin_sampling(interval_ns: u64, process_name: String) -> PyResult<()> {
    let interval = Duration::from_nanos(interval_ns);
    SETTINGS.get_or_init(|| Settings {
        interval,
        process_name,
    });
    let mut sampling = sampling();
    sampling.is_wanted = true;
    Ok(sampling.start()?)
}

/// Stops sampling the stacks of Python threads until [`restart_sampling`]. The frames that are on the stacks now are written first.
#[pyfunction]
pub(crate) fn end_sampling(py: Python<'_>) {
    sampling().is_wanted = false;
    end_thread(py);
}

/// Starts sampling the stacks of Python threads again if this process, or the one that forked it, was sampled.
pub(crate) fn restart_sampling() {
    let mut sampling = sampling();
    sampling.is_wanted = true;
    let _ = sampling.start(); // without a thread, only samples are missing
}

/// Ends the sampling thread before the process forks.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    sampling().forks += 1;
    end_thread(py);
}

/// Starts the sampling thread again in the parent after a fork, unless another fork is in progress.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    let mut sampling = sampling();
    sampling.forks = sampling.forks.saturating_sub(1);
    let _ = sampling.start(); // as above
}

/// Starts the sampling thread again in the child of a fork. Forks by the parent's other threads are not in progress there.
#[pyfunction]
pub(crate) fn restart_sampling_in_child() {
    let mut sampling = sampling();
    sampling.forks = 0;
    let _ = sampling.start(); // as above
}

/// Ends the sampling thread, and waits until it is gone, for two seconds at most. Waits even if another thread asked it to end.
fn end_thread(py: Python<'_>) {
    let ending = sampling().running.as_ref().and_then(Running::end);
    if let Some(state) = ending {
        py.detach(|| wait_for(&state));
    }
}

fn wait_for(state: &State) {
    let begun = Instant::now();
    while !state.is_gone() && begun.elapsed() < MAX_WAIT {
        host::sleep(POLL_INTERVAL);
    }
}

fn spawn(settings: &'static Settings) -> std::io::Result<Running> {
    let state = Arc::new(State::default());
    let thread_state = Arc::clone(&state);
    let thread = host::spawn_quiet("sa-samples", move || {
        thread_state.tid.store(host::tid(), Ordering::Relaxed);
        thread::run(settings, &thread_state.should_end);
        thread_state.has_ended.store(true, Ordering::Release);
    })?;
    Ok(Running {
        pid: std::process::id(),
        thread,
        state,
    })
}
