//! [`AsyncSpan`] and [`Request`]: spans with a lane of their own, begun here and ended anywhere.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{AsyncSpan as Recorded, now_ns};

use crate::event::Event;
use crate::point::{NOW, text_of};
use crate::scratch::Scratch;
use crate::span::push_error;
use crate::{lane, names, start, value};

/// A span under way on a lane of its own. Any thread or task may end it.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct AsyncSpan {
    /// None once it has ended.
    span: Mutex<Option<Recorded>>,
}

#[pymethods]
impl AsyncSpan {
    /// Adds args.
    #[pyo3(signature = (**args))]
    fn arg(&self, args: Option<&Bound<'_, PyDict>>) {
        let args = text_of(args); // before the lock: it may run code
        if let Some(span) = self.lock().as_mut() {
            span.args(&args);
        }
    }

    /// Ends it, with more args; a second time does nothing.
    #[pyo3(signature = (**args))]
    fn end(&self, args: Option<&Bound<'_, PyDict>>) {
        let args = text_of(args);
        let ended = self.lock().take();
        if let Some(mut span) = ended {
            span.args(&args);
        }
    }

    /// An instant on the span's row, of now or of another time.
    #[pyo3(signature = (name, /, *, cat="e2e", level="e2e", ts_ns=None, **args))]
    fn instant(
        &self,
        name: &Bound<'_, PyAny>,
        cat: &str,
        level: &str,
        ts_ns: Option<u64>,
        args: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.write_instant(name, (cat, level), ts_ns, |text| {
            if let Some(args) = args {
                value::push_all(text, args);
            }
        })
    }

    /// Whether it is being recorded: worth computing costly args for.
    fn is_recording(&self) -> bool {
        self.lock().as_ref().is_some_and(Recorded::is_recording)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind=None, value=None, traceback=None, /))]
    fn __exit__(
        &self,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (value, traceback);
        let mut args = Vec::new();
        if let Some(kind) = kind {
            push_error(&mut args, kind);
        }
        let ended = self.lock().take();
        if let Some(mut span) = ended {
            span.raw(&args);
        }
    }
}

impl AsyncSpan {
    fn of(span: Recorded) -> AsyncSpan {
        AsyncSpan {
            span: Mutex::new(Some(span)),
        }
    }

    /// An instant on its row; once it has ended, on that of the running code. Where that has none, the instant is of now.
    fn write_instant(
        &self,
        name: &Bound<'_, PyAny>,
        (category, level): (&str, &str),
        ts_ns: Option<u64>,
        args: impl FnOnce(&mut Vec<u8>),
    ) -> PyResult<()> {
        let level = names::level_of(level)?;
        if !sa_recorder::__wants(level) {
            return Ok(());
        }
        let py = name.py();
        start::prepare_thread(py);
        let mut text = Scratch::take();
        args(&mut text.0);
        let category = PyString::intern(py, category);
        let event = Event {
            named: names::named(level, Some(category.as_any()), name)?,
            category: Some(category.as_any()),
            name,
            args: &text.0,
        };
        let row = self.lock().as_ref().and_then(|span| span.row_since(NOW));
        match row.or_else(|| lane::task_row(py, NOW)) {
            Some(row) => event.instant_on_row_at(row, ts_ns.unwrap_or_else(now_ns)),
            None => event.instant_on_thread(),
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recorded>> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way: an async span whose events carry its id.
#[pyclass(frozen, extends = AsyncSpan, module = "sa_profile")]
pub(crate) struct Request {
    #[pyo3(get)]
    request_id: Py<PyString>,
}

#[pymethods]
impl Request {
    /// An instant of the request, on its row.
    #[pyo3(signature = (name, /, *, cat="request", level="e2e", ts_ns=None, **args))]
    fn instant(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyAny>,
        cat: &str,
        level: &str,
        ts_ns: Option<u64>,
        args: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let span = slf.as_super().get();
        let id = &slf.get().request_id;
        span.write_instant(name, (cat, level), ts_ns, |text| {
            push_request(text, slf.py(), id, args);
        })
    }
}

fn push_request(
    text: &mut Vec<u8>,
    py: Python<'_>,
    id: &Py<PyString>,
    args: Option<&Bound<'_, PyDict>>,
) {
    let key = PyString::intern(py, "request_id");
    value::push(text, key.as_any(), id.bind(py).as_any());
    if let Some(args) = args {
        value::push_all(text, args);
    }
}

fn open(
    name: &Bound<'_, PyAny>,
    category: &str,
    level: &str,
    lane: Option<&str>,
    args: &[u8],
) -> PyResult<Recorded> {
    let level = names::level_of(level)?;
    if !sa_recorder::__wants(level) {
        return Ok(Recorded::off());
    }
    start::prepare_thread(name.py());
    let category = PyString::intern(name.py(), category);
    let event = Event {
        named: names::named(level, Some(category.as_any()), name)?,
        category: Some(category.as_any()),
        name,
        args,
    };
    Ok(event.open_on_lane(None, lane, event.unkept_texts().as_ref()))
}

/// Begins a span on a lane of its own.
#[pyfunction]
#[pyo3(signature = (name, /, *, cat="e2e", level="e2e", lane=None, **args))]
fn async_span(
    name: &Bound<'_, PyAny>,
    cat: &str,
    level: &str,
    lane: Option<&str>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<AsyncSpan> {
    let mut text = Scratch::take();
    if let Some(args) = args {
        value::push_all(&mut text.0, args);
    }
    Ok(AsyncSpan::of(open(name, cat, level, lane, &text.0)?))
}

/// Begins the span of a request, on a lane of its own.
#[pyfunction]
#[pyo3(signature = (request_id, /, *, name=None, cat="request", level="e2e", **args))]
fn request<'py>(
    request_id: Bound<'py, PyString>,
    name: Option<Bound<'py, PyAny>>,
    cat: &str,
    level: &str,
    args: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Request>> {
    let py = request_id.py();
    let name = name.unwrap_or_else(|| PyString::intern(py, "request").into_any());
    let request_id = request_id.unbind();
    let mut text = Scratch::take();
    push_request(&mut text.0, py, &request_id, args);
    let span = AsyncSpan::of(open(&name, cat, level, None, &text.0)?);
    Bound::new(py, (Request { request_id }, span))
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncSpan>()?;
    module.add_class::<Request>()?;
    module.add_function(wrap_pyfunction!(async_span, module)?)?;
    module.add_function(wrap_pyfunction!(request, module)?)
}
