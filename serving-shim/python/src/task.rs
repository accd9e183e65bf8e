//! Which asyncio task runs on the calling thread, asked as cheaply as Python lets us.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// asyncio was imported by the program: before that nothing runs in a task.
static IMPORTED: AtomicBool = AtomicBool::new(false);
/// The modules the program has imported.
static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();

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
    let asyncio = asyncio(py)?;
    let running = asyncio.running_loop(py)?;
    let task = match &asyncio.current {
        Current::Function(function) => function.bind(py).call1((running,)).ok()?,
        Current::Dict(tasks) => tasks.bind(py).get_item(running).ok()??,
    };
    (!task.is_none()).then_some(task)
}

/// Returns the event loop that runs on the calling thread.
pub(crate) fn running_loop(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    asyncio(py)?.running_loop(py)
}

/// What is remembered of asyncio, once the program has imported all of it. Nothing is imported here, and nothing waits: this may be a span within the import.
fn asyncio(py: Python<'_>) -> Option<&Asyncio> {
    if let Some(known) = ASYNCIO.get(py) {
        return Some(known);
    }
    let found = Asyncio::find(py)?;
    let _ = ASYNCIO.set(py, found); // another thread may have been first
    ASYNCIO.get(py)
}

fn look_for_asyncio(py: Python<'_>) -> bool {
    let name = intern!(py, "asyncio.tasks");
    let found = modules(py).is_some_and(|modules| modules.contains(name).unwrap_or(false));
    IMPORTED.store(found, Ordering::Relaxed);
    found
}

/// Returns `sys.modules`.
pub(crate) fn modules(py: Python<'_>) -> Option<&Bound<'_, PyDict>> {
    let modules = MODULES.get_or_try_init(py, || -> PyResult<Py<PyDict>> {
        let modules = py.import("sys")?.getattr("modules")?;
        Ok(modules.cast_into::<PyDict>()?.unbind())
    });
    Some(modules.ok()?.bind(py))
}

/// A module that the program has imported, if its body has ended.
fn whole<'py>(name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let py = name.py();
    let module = modules(py)?.get_item(name).ok()??;
    let spec = module.getattr(intern!(py, "__spec__")).ok()?;
    let is_under_way = spec.getattr(intern!(py, "_initializing"));
    let is_under_way = is_under_way.is_ok_and(|yes| yes.is_truthy().unwrap_or(false));
    (!is_under_way).then_some(module)
}

impl Asyncio {
    fn running_loop<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let running = self.running_loop.bind(py).call0().ok()?; // an error here is nobody's
        (!running.is_none()).then_some(running)
    }

    fn find(py: Python<'_>) -> Option<Asyncio> {
        let events = whole(intern!(py, "asyncio.events"))?;
        let tasks = whole(intern!(py, "asyncio.tasks"))?;
        let dict = tasks.getattr("_current_tasks").ok();
        let dict = dict.and_then(|dict| dict.cast_into::<PyDict>().ok());
        let version = py.version_info();
        let current = match dict {
            Some(dict) if version < (3, 12) => Current::Dict(dict.unbind()),
            _ => Current::Function(tasks.getattr("current_task").ok()?.unbind()),
        };
        Some(Asyncio {
            running_loop: events.getattr("_get_running_loop").ok()?.unbind(),
            current,
        })
    }
}

/// Rows have the name of the task's coroutine too.
static NAMES_COROUTINES: AtomicBool = AtomicBool::new(false);

/// Has the rows of tasks named by the task and its coroutine, from now on.
#[pyfunction]
pub(crate) fn name_coroutines() {
    NAMES_COROUTINES.store(true, Ordering::Relaxed);
}

/// What the row of a task is called.
pub(crate) fn row_name(task: &Bound<'_, PyAny>) -> String {
    let mut name = name(task);
    if NAMES_COROUTINES.load(Ordering::Relaxed) {
        let coroutine = coroutine_name(task);
        if !coroutine.is_empty() && !name.ends_with(&coroutine) {
            name.push(' ');
            name.push_str(&coroutine);
        }
    }
    name
}

/// The name of a task's coroutine; nothing where it has none.
pub(crate) fn coroutine_name(task: &Bound<'_, PyAny>) -> String {
    let coroutine = task.call_method0(intern!(task.py(), "get_coro"));
    let name = coroutine.and_then(|coroutine| coroutine.getattr("__qualname__"));
    let name = name.and_then(|name| name.extract::<String>());
    name.unwrap_or_default()
}

/// The name of a task.
fn name(task: &Bound<'_, PyAny>) -> String {
    let name = task.call_method0(intern!(task.py(), "get_name"));
    let name = name.and_then(|name| name.extract::<String>());
    name.unwrap_or_default()
}

/// Whether a task has ended.
pub(crate) fn is_done(task: &Bound<'_, PyAny>) -> bool {
    let done = task.call_method0(intern!(task.py(), "done"));
    done.and_then(|done| done.extract()).unwrap_or(true)
}
