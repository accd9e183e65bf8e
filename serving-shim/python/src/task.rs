//! Finds the asyncio task that runs on the calling thread, as cheaply as Python allows.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// True once the program has imported asyncio. Before that, nothing runs in a task.
static IMPORTED: AtomicBool = AtomicBool::new(false);
/// `sys.modules`.
static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();

/// Functions and data of asyncio that lead to the running task.
struct Asyncio {
    running_loop: Py<PyAny>,
    current: Current,
}

enum Current {
    /// A function of an event loop, written in C since Python 3.12.
    Function(Py<PyAny>),
    /// The dict by event loop that Python 3.10 and 3.11 keep, because calling the function takes four times as long there.
    Dict(Py<PyDict>),
}

/// Returns the asyncio task that runs on the calling thread, or `None` if none does.
pub(crate) fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    if !IMPORTED.load(Ordering::Relaxed) && !is_asyncio_imported(py) {
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

/// Returns the asyncio event loop that runs on the calling thread, or `None` if none does.
pub(crate) fn running_loop(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    asyncio(py)?.running_loop(py)
}

/// Returns the functions of asyncio that lead to the running task, or `None` until the program has completely imported asyncio. This call imports nothing and
/// waits for nothing, because it may come from a span within the import.
fn asyncio(py: Python<'_>) -> Option<&Asyncio> {
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Some(asyncio);
    }
    let found = Asyncio::find(py)?;
    let _ = ASYNCIO.set(py, found); // another thread may have been faster
    ASYNCIO.get(py)
}

fn is_asyncio_imported(py: Python<'_>) -> bool {
    let name = intern!(py, "asyncio.tasks");
    let found = modules(py).is_some_and(|modules| modules.contains(name).unwrap_or(false));
    IMPORTED.store(found, Ordering::Relaxed);
    found
}

/// Returns `sys.modules`, the dict of imported modules.
pub(crate) fn modules(py: Python<'_>) -> Option<&Bound<'_, PyDict>> {
    let modules = MODULES.get_or_try_init(py, || -> PyResult<Py<PyDict>> {
        let modules = py.import("sys")?.getattr("modules")?;
        Ok(modules.cast_into::<PyDict>()?.unbind())
    });
    Some(modules.ok()?.bind(py))
}

/// Returns the module with this name if the program has imported it and its body has finished.
fn fully_imported<'py>(name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let py = name.py();
    let module = modules(py)?.get_item(name).ok()??;
    let spec = module.getattr(intern!(py, "__spec__")).ok()?;
    let is_under_way = spec.getattr(intern!(py, "_initializing"));
    let is_under_way = is_under_way.is_ok_and(|yes| yes.is_truthy().unwrap_or(false));
    (!is_under_way).then_some(module)
}

impl Asyncio {
    fn running_loop<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let running = self.running_loop.bind(py).call0().ok()?; // errors are ignored
        (!running.is_none()).then_some(running)
    }

    fn find(py: Python<'_>) -> Option<Asyncio> {
        let events = fully_imported(intern!(py, "asyncio.events"))?;
        let tasks = fully_imported(intern!(py, "asyncio.tasks"))?;
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

/// True if tracks of tasks are also named after the task's coroutine.
static NAMES_COROUTINES: AtomicBool = AtomicBool::new(false);

/// Makes the tracks of asyncio tasks be named after both the task and its coroutine, from now on.
#[pyfunction]
pub(crate) fn name_coroutines() {
    NAMES_COROUTINES.store(true, Ordering::Relaxed);
}

/// Returns the name for an asyncio task's track: the name of the task and, if wanted, of its coroutine.
pub(crate) fn track_name(task: &Bound<'_, PyAny>) -> String {
    let mut name = task_name(task);
    if NAMES_COROUTINES.load(Ordering::Relaxed) {
        let coroutine = coroutine_name(task);
        if !coroutine.is_empty() && !name.ends_with(&coroutine) {
            name.push(' ');
            name.push_str(&coroutine);
        }
    }
    name
}

/// Returns the name of an asyncio task's coroutine, or an empty text if it has none.
pub(crate) fn coroutine_name(task: &Bound<'_, PyAny>) -> String {
    let coroutine = task.call_method0(intern!(task.py(), "get_coro"));
    let name = coroutine.and_then(|coroutine| coroutine.getattr("__qualname__"));
    let name = name.and_then(|name| name.extract::<String>());
    name.unwrap_or_default()
}

/// Returns the name of an asyncio task, or an empty text if it has none.
fn task_name(task: &Bound<'_, PyAny>) -> String {
    let name = task.call_method0(intern!(task.py(), "get_name"));
    let name = name.and_then(|name| name.extract::<String>());
    name.unwrap_or_default()
}

/// Returns true if an asyncio task has ended.
pub(crate) fn is_done(task: &Bound<'_, PyAny>) -> bool {
    let done = task.call_method0(intern!(task.py(), "done"));
    done.and_then(|done| done.extract()).unwrap_or(true)
}
