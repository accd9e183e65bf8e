//! Records the lifetimes of asyncio tasks as spans on their tracks, from the creation of a task until its coroutine ends. Spans recorded in the task are inside.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use pyo3::{ffi, intern};
use sa_recorder::Level;

use crate::event::Event;
use crate::interpreter::calls;
use crate::lane::{End, Owner};
use crate::span::push_error;
use crate::{task, tasks, thread_setup};

/// The owner of these spans. No object has this address.
const TASK_SPAN: Owner = 1;
/// Function that enables the event for the end of a code object.
static WATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the Python function `watch(code)`, which makes `sys.monitoring` report the end of a code object's calls.
#[pyfunction]
#[pyo3(signature = (watch, /))]
pub(crate) fn set_coroutine_watcher(py: Python<'_>, watch: Py<PyAny>) {
    let _ = WATCH.set(py, watch); // once in a process
}

/// Opens the span for the lifetime of a new asyncio task. A task that has already ended, as an eager one may have, gets no track.
pub(super) fn begin(task: &Bound<'_, PyAny>) -> PyResult<()> {
    if sa_recorder::__wants(Level::E2e) && !task::is_done(task) && !tasks::has_span(task, TASK_SPAN)
    {
        open_span(task)
    } else {
        Ok(())
    }
}

fn open_span(task: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = task.py();
    let coroutine = task.call_method0(intern!(py, "get_coro"))?;
    let code = coroutine.getattr(intern!(py, "cr_code"))?;
    if !calls::is_task_coroutine(&code)
        && let Some(watch) = WATCH.get(py)
    {
        watch.bind(py).call1((&code,))?;
    }
    thread_setup::prepare_thread(py);
    let (name, category) = (task::coroutine_name(task), PyString::intern(py, "task"));
    let name = PyString::new(py, &name);
    let event = Event::new(Level::E2e, Some(category.as_any()), &name, b"")?;
    tasks::enter(task, &event, TASK_SPAN);
    Ok(())
}

/// Ends the span for the lifetime of the running asyncio task, if the coroutine that ends is the task's own.
pub(super) fn end(py: Python<'_>, error: Option<&Bound<'_, PyAny>>, is_closed: bool) {
    if !tasks::any_open() {
        return;
    }
    let mut args = Vec::new();
    if let Some(error) = error {
        push_error(&mut args, error);
    }
    let end = End {
        args: &args,
        ns: None,
    };
    match task::current(py) {
        Some(task) if is_running(&task) => {
            tasks::exit(&task, TASK_SPAN, end);
        }
        // The coroutine is closed together with its task, while other code runs.
        _ if is_closed && tasks::any_freed() => {
            tasks::exit_freed(TASK_SPAN, end);
        }
        _ => {}
    }
}

/// Returns true if the innermost frame belongs to the asyncio task's own coroutine.
fn is_running(task: &Bound<'_, PyAny>) -> bool {
    let py = task.py();
    let coroutine = task.call_method0(intern!(py, "get_coro"));
    let frame = coroutine.and_then(|coroutine| coroutine.getattr(intern!(py, "cr_frame")));
    // SAFETY: the thread is attached. The result is only compared, not used as an object.
    let running = unsafe { ffi::PyEval_GetFrame() };
    frame.is_ok_and(|frame| frame.as_ptr() == running.cast())
}
