//! Samples of what Python runs: every few ms the stacks of all threads, as slices on rows of their own. It is for programs without a line of ours.
//!
//! **Data flow.** `thread` wakes, takes the interpreter's lock for one look (`look`: stacks as frames that `codes` knows), gives it back, and hands what it saw
//! to `rows`. There a frame is a slice from the first sample that has it to the first one that does not.
//!
//! **What it costs the host.** The lock, for as long as a look takes. After two long looks in a row the thread sleeps fifty times as long as the shorter one took.
//! Where nothing is recorded it does not look.
//!
//! **Forks.** No thread of ours may run while the host forks. Several of its threads may fork at once, so the thread begins again after the last of these forks.

mod codes;
mod look;
mod rows;
mod thread;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sa_recorder::host;

/// How long the end of a process waits for the thread: its file system may hang.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks whether the thread has ended.
const MOMENT: Duration = Duration::from_micros(200);

/// What to do, as the process was told at its start.
#[derive(Debug)]
struct Settings {
    interval: Duration,
    process_name: String,
}

/// A thread that samples, or has been asked to end.
struct Running {
    /// The process it runs in: the child of a fork has none of its parent's threads.
    pid: u32,
    thread: host::Thread,
    state: Arc<State>,
}

impl Running {
    /// Asks the thread to end; what tells when it is gone. `None` if it is not of this process.
    fn end(&self) -> Option<Arc<State>> {
        self.state.shall_end.store(true, Ordering::Release);
        self.thread.unpark();
        self.is_here().then(|| Arc::clone(&self.state))
    }

    fn samples(&self) -> bool {
        self.is_here() && !self.state.shall_end.load(Ordering::Acquire)
    }

    fn is_here(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// What this process wants sampled, and what does it.
struct Sampling {
    is_wanted: bool,
    /// Forks under way.
    forks: u32,
    running: Option<Running>,
}

/// How a thread and whoever ends it agree.
#[derive(Debug, Default)]
struct State {
    shall_end: AtomicBool,
    has_ended: AtomicBool,
    /// The kernel's id of the thread, once it runs.
    tid: AtomicU32,
}

impl State {
    /// Whether the thread is gone for the kernel too, which the host may ask: Python does at a fork.
    fn is_gone(&self) -> bool {
        let tid = self.tid.load(Ordering::Relaxed);
        self.has_ended.load(Ordering::Acquire)
            && !Path::new(&format!("/proc/self/task/{tid}")).exists()
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Locked for a moment, by threads that have the interpreter's lock: no fork finds it taken.
static SAMPLING: Mutex<Sampling> = Mutex::new(Sampling {
    is_wanted: false,
    forks: 0,
    running: None,
});

fn sampling() -> MutexGuard<'static, Sampling> {
    SAMPLING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampling {
    /// Starts the thread if there shall be one and is none.
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

/// Samples this process from now on, every so many ns, and gives it this name in the trace.
///
/// # Errors
/// Why there is no thread for it.
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

/// Writes what the stacks hold, and samples no more until [`sample_again`].
#[pyfunction]
pub(crate) fn end_sampling(py: Python<'_>) {
    sampling().is_wanted = false;
    end_thread(py);
}

/// Samples again if this process, or the one that forked it, was told to.
pub(crate) fn sample_again() {
    let mut sampling = sampling();
    sampling.is_wanted = true;
    let _ = sampling.start(); // where there was one there may be none now: only samples are missing
}

/// What a thread does before it forks.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    sampling().forks += 1;
    end_thread(py);
}

/// What the thread that forked does then.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    let mut sampling = sampling();
    sampling.forks = sampling.forks.saturating_sub(1);
    let _ = sampling.start(); // as above
}

/// What the child does: forks of its parent's other threads are not under way in it.
#[pyfunction]
pub(crate) fn sample_in_child() {
    let mut sampling = sampling();
    sampling.forks = 0;
    let _ = sampling.start(); // as above
}

/// Ends the thread, and waits until it is gone, whoever asked first.
fn end_thread(py: Python<'_>) {
    let ending = sampling().running.as_ref().and_then(Running::end);
    if let Some(state) = ending {
        py.detach(|| wait_for(&state));
    }
}

fn wait_for(state: &State) {
    let begun = Instant::now();
    while !state.is_gone() && begun.elapsed() < PATIENCE {
        host::sleep(MOMENT);
    }
}

fn spawn(settings: &'static Settings) -> std::io::Result<Running> {
    let state = Arc::new(State::default());
    let of_thread = Arc::clone(&state);
    let thread = host::spawn_quiet("sa-samples", move || {
        of_thread.tid.store(host::tid(), Ordering::Relaxed);
        thread::run(settings, &of_thread.shall_end);
        of_thread.has_ended.store(true, Ordering::Release);
    })?;
    Ok(Running {
        pid: std::process::id(),
        thread,
        state,
    })
}
