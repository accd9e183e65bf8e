//! Samples of what Python runs: every few ms the stacks of all threads, as slices on rows of their own. It is for programs without a line of ours.
//!
//! **Data flow.** `thread` wakes, takes the interpreter's lock for one look (`look`: stacks as frames that `codes` knows), gives it back, and hands what it saw
//! to `rows`. There a frame is a slice from the first sample that has it to the first one that does not.
//!
//! **What it costs the host.** The lock, for as long as a look takes. After two long looks the thread sleeps for longer, so that looks take a fiftieth of the time
//! at most. Where nothing is recorded it does not look.

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

/// A thread that samples.
struct Running {
    thread: host::Thread,
    state: Arc<State>,
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
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Samples this process from now on, every so many ns, and gives it this name in the trace.
///
/// # Errors
/// Why there is no thread for it.
#[pyfunction]
#[pyo3(signature = (interval_ns, process_name, /))]
fn begin_sampling(interval_ns: u64, process_name: String) -> PyResult<()> {
    let interval = Duration::from_nanos(interval_ns);
    let settings = SETTINGS.get_or_init(|| Settings {
        interval,
        process_name,
    });
    Ok(start(settings)?)
}

/// Writes what the stacks hold, and samples no more until [`resume_sampling`].
#[pyfunction]
pub(crate) fn pause_sampling(py: Python<'_>) {
    let taken = running().take();
    if let Some(Running { thread, state }) = taken {
        state.shall_end.store(true, Ordering::Release);
        thread.unpark();
        py.detach(|| wait_for(&state));
    }
}

fn wait_for(state: &State) {
    let begun = Instant::now();
    while !state.is_gone() && begun.elapsed() < PATIENCE {
        host::sleep(MOMENT);
    }
}

/// Samples again if this process, or the one that forked it, was told to.
#[pyfunction]
pub(crate) fn resume_sampling() {
    if let Some(settings) = SETTINGS.get() {
        let _ = start(settings); // where there was one there may be none now: only samples are missing
    }
}

fn start(settings: &'static Settings) -> std::io::Result<()> {
    let mut running = running();
    if running.is_some() {
        return Ok(());
    }
    let state = Arc::new(State::default());
    let of_thread = Arc::clone(&state);
    let thread = host::spawn_quiet("sa-samples", move || {
        of_thread.tid.store(host::tid(), Ordering::Relaxed);
        thread::run(settings, &of_thread.shall_end);
        of_thread.has_ended.store(true, Ordering::Release);
    })?;
    *running = Some(Running { thread, state });
    Ok(())
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(begin_sampling, module)?)?;
    module.add_function(wrap_pyfunction!(pause_sampling, module)?)?;
    module.add_function(wrap_pyfunction!(resume_sampling, module)?)
}
