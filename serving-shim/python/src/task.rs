//! Which asyncio task runs on the calling thread, asked as cheaply as Python lets us.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// asyncio was imported by the program: before that nothing runs in a task.
static IMPORTED: AtomicBool = AtomicBool::new(false);
/// The modules the program has imported.
static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
static ASYNCIO: PyOnceLock<Option<Asyncio>> = PyOnceLock::new();

/// What asyncio tells of the running task.
struct Asyncio {
    running_loop: Py<PyAny>,
    current: Current,
}

enum Current {
    /// A function of a loop, in C since Python 3.12.
    Function(Py<PyAny>),
    /// The dict of loops that Python 3.10 and 3.11 keep; asking by function takes four times as long there.
    Dict(Py<PyDict>),
}

/// The task that runs on the calling thread.
pub(crate) fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    if !IMPORTED.load(Ordering::Relaxed) && !look_for_asyncio(py) {
        return None;
    }
    let asyncio = ASYNCIO
        .get_or_init(py, || Asyncio::find(py).ok())
        .as_ref()?;
    let running = asyncio.running_loop.bind(py).call0();
    let running = quiet(running).filter(|running| !running.is_none())?;
    let task = match &asyncio.current {
        Current::Function(function) => quiet(function.bind(py).call1((running,)))?,
        Current::Dict(tasks) => tasks.bind(py).get_item(running).ok()??,
    };
    (!task.is_none()).then_some(task)
}

/// An error here is nobody's.
fn quiet<T>(result: PyResult<T>) -> Option<T> {
    result.ok()
}

fn look_for_asyncio(py: Python<'_>) -> bool {
    let modules = MODULES.get_or_try_init(py, || -> PyResult<Py<PyDict>> {
        let modules = py.import("sys")?.getattr("modules")?;
        Ok(modules.cast_into::<PyDict>()?.unbind())
    });
    let found = modules.is_ok_and(|modules| {
        let modules = modules.bind(py);
        modules
            .contains(intern!(py, "asyncio.tasks"))
            .unwrap_or(false)
    });
    IMPORTED.store(found, Ordering::Relaxed);
    found
}

impl Asyncio {
    fn find(py: Python<'_>) -> PyResult<Asyncio> {
        let events = py.import("asyncio.events")?;
        let tasks = py.import("asyncio.tasks")?;
        let dict = tasks.getattr("_current_tasks").ok();
        let dict = dict.and_then(|dict| dict.cast_into::<PyDict>().ok());
        let version = py.version_info();
        let current = match dict {
            Some(dict) if version < (3, 12) => Current::Dict(dict.unbind()),
            _ => Current::Function(tasks.getattr("current_task")?.unbind()),
        };
        Ok(Asyncio {
            running_loop: events.getattr("_get_running_loop")?.unbind(),
            current,
        })
    }
}

/// The name of a task.
pub(crate) fn name(task: &Bound<'_, PyAny>) -> String {
    let name = task.call_method0(intern!(task.py(), "get_name"));
    let name = name.and_then(|name| name.extract::<String>());
    name.unwrap_or_default()
}

/// Whether a task has ended.
pub(crate) fn is_done(task: &Bound<'_, PyAny>) -> bool {
    let done = task.call_method0(intern!(task.py(), "done"));
    done.and_then(|done| done.extract()).unwrap_or(true)
}
