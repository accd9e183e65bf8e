//! Records what the interpreter does by itself: imports, garbage collections, and what its threads run.

pub(crate) mod calls;
pub(crate) mod garbage;
pub(crate) mod imports;
pub(crate) mod sampling;
pub(crate) mod subinterpreters;
pub(crate) mod task_spans;

use pyo3::prelude::*;
use sa_recorder::{Args, Level, duration};

use crate::session::is_pending;
use crate::thread_setup;

/// Records a span of the interpreter's own work on the calling thread, from its start time and its duration. It is never a process's first event, because the program decides which process
/// becomes the run's main one.
fn record_span(
    py: Python<'_>,
    name: &str,
    (began_ns, took_ns): (u64, u64),
    args: impl FnOnce() -> Args,
) {
    if sa_recorder::__wants(Level::E2e)
        && !is_pending()
        && let Ok(took_ns) = i64::try_from(took_ns)
    {
        thread_setup::prepare_thread(py);
        let (category, began_ns) = ("python", Some(began_ns));
        duration(Level::E2e, category, name, took_ns, began_ns, &args());
    }
}
