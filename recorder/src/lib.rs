//! Records Chrome trace events of one process into one crash-safe fragment.
//!
//! Set `SA_PROFILE_DIR`, and every process that uses this crate appends its events to
//! `<dir>/fragments/trace.<pid>.jsonl`. The command `trace-merge <dir>` merges all fragments into
//! one trace for Perfetto.
//!
//! ```
//! use sa_recorder::{Recorder, counter, instant, span};
//!
//! let recorder = Recorder::init(); // first thing in main: child processes join the run
//! recorder.set_process_name("worker-0");
//! {
//!     let mut step = span!("worker", "WorkerProcess.execute_step", prefill = 1, decode = 7);
//!     let _kernel = span!(kernel, "kernel", "matmul", m = 64, n = 64, k = 64);
//!     instant!("serving", "request.queued", request_id = "cmpl-1");
//!     counter!("requests", running = 3, waiting = 1);
//!     step.arg("tokens", 8);
//! }
//! ```
//!
//! **Data flow.** A macro formats its event as a JSON line directly in the calling thread's slot of
//! a memory-mapped ring file. One store publishes the line. A helper thread appends published lines
//! to the fragment in blocks. A young process with one thread does this itself, when three quarters
//! of its ring are full and at exit. FORMAT.md describes both files.
//!
//! **What a crash loses.** Nothing that was published. After SIGKILL, the merge reads the tail from
//! the ring and shows the spans that were open. (A crash of the machine loses what the page cache
//! had not yet written.) The recorder never makes its host fail or panic. Events that it cannot
//! keep are counted and reported in the trace.
//!
//! **Switching.** The helper follows `<dir>/control` (`sa-profile start`, `stop`, `level`): all
//! processes of a run switch at the same instant. A process without a helper checks the file with
//! its first event in each second. Spans that are open at a stop are recorded whole when they end,
//! with a mark. `SA_PROFILE_START=paused` starts with recording switched off.
//!
//! **Threads.** The helper is a thread with all signals blocked. A process gets it when it has
//! several threads of its own, or has recorded for five seconds. It gets it immediately if it
//! starts paused, and when it is switched. `SA_PROFILE_THREADS=0` forbids the helper. The helper
//! ends by itself when it is the last thread.
//!
//! **Restart.** [`Recorder::start_with`] ends the recording and begins another one with other
//! variables. The old recording reports everything that is still open as unfinished. Threads switch
//! to the new recording with their next event, and the resources of the old one are freed.
//!
//! **Waits.** An event does not wait while its thread's ring has room. When the ring is full and
//! another thread is writing, the event waits for that thread, for at most one second, before
//! events are dropped. The same limit applies to an event that is larger than the ring, to
//! [`Recorder::flush`], and to a start of the recorder on another thread. Exit takes at most one
//! second in all. A thread whose ring fills up faster than the helper writes does the writing
//! itself. It waits as long as the file system makes it wait.
//!
//! **Signal handlers** should not record. The first event of a thread, of a name and of a call site
//! allocates memory, and so do many args. This deadlocks if the handler interrupted the allocator.
//! An event in a handler that interrupted an event of the same thread is dropped and counted.
//!
//! **Cost.** `cargo bench -p sa-recorder --bench record` prints it: about two clock reads plus
//! formatting for a span, and one load while recording is off.
#![expect(
    unsafe_code,
    reason = "maps the ring, calls the operating system, and keeps per-thread state that survives forks"
)]
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::disallowed_macros
    )
)]

mod event;
mod lifecycle;
mod macros;
mod process;
mod recorder;
mod ring;
mod run;
mod segment;
mod sys;
mod text;
mod thread;

pub use event::async_span::{AsyncSpan, AsyncSpanId};
pub use event::instant::{FLOW_CATEGORY, FlowId, FlowPhase, duration, flow, flow_at, flow_now};
#[doc(hidden)]
pub use event::instant::{ready_instant, site_counter, site_instant};
#[doc(hidden)]
pub use event::span::SiteArgs;
pub use event::span::{SpanGuard, SpanId, begin, end};
pub use event::track::{Track, TrackProcess};
pub use lifecycle::restart::StartError;
pub use recorder::Recorder;
pub use run::config::{Config, Keep, Levels, RunPaths, Threads};
pub use run::membership::new_run_id;
pub use sa_format::Level;
pub use segment::fragment::holds_rings;
pub use sys::clock::now_ns;
#[doc(hidden)]
pub use text::site::Site;
pub use text::value::{Args, Value};
#[doc(hidden)]
pub use text::value::{TextGuarantee, encode_key};

/// Functions for other libraries of this workspace, implemented in the way the recorder needs them.
#[doc(hidden)]
pub mod host {
    pub use crate::run::identity::{is_ancestor, sees_processes};
    pub use crate::sys::cancel::Uncancelled;
    pub use crate::sys::clock::anchor;
    pub use crate::sys::memory::count_cut;
    pub use crate::sys::sleep::sleep;
    pub use crate::sys::thread::{Thread, park_timeout, spawn_quiet, tid};
    pub use crate::sys::{is_privileged, random, run_after_fork, run_at_exit, variable, warn_once};
}

/// Returns true if events of this level are recorded now, so that a macro should record its event.
/// Costs one load of a private mask.
#[doc(hidden)]
#[inline(always)]
pub fn __wants(level: Level) -> bool {
    process::mask::wants(level)
}

/// Returns true if events of this level are recorded now, or were recorded at `start_ns`. For an
/// event that began at `start_ns`, a time as returned by [`now_ns`].
#[doc(hidden)]
pub fn __wants_since(level: Level, start_ns: u64) -> bool {
    process::mask::wants_since(level, start_ns)
}

/// Compiles and runs the examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Compiles and runs the program of docs/rust.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
pub struct RustPage;
