//! [`Span`]: a call site's reusable span, as a context manager and decorator.

pub(crate) mod null_span;
pub(crate) mod off;
pub(crate) mod open;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use sa_recorder::Level;
use smallvec::SmallVec;

use crate::event::Event;
use crate::lane::{self, BEGUN, BEGUN_MISSED, End, Missed};
use crate::names::{self, Named};
use crate::profile::{self, NO_ARGS};
use crate::scratch::Scratch;
use crate::{session, tasks};

/// A span that can be opened repeatedly, and by threads, tasks and recursion at once.
///
/// It stores no times. They are stored with the running thread or task::
///
///     STEP = sa_profile.span("step", cat="engine")
///     with STEP:
///         STEP.arg(tokens=8)
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Span {
    named: Named,
    name: Py<PyAny>,
    category: Option<Py<PyAny>>,
    /// Encoded args. Most spans have so few that they fit inside the object.
    args: SmallVec<[u8; 64]>,
    /// Args that are read when the span ends.
    dict: Option<Py<PyDict>>,
    /// True for a span of the drop-in profiler: its event always has the member `args`, and never `error`.
    is_drop_in: bool,
    missed: Missed,
}

#[pymethods]
impl Span {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        Span::enter(&slf);
        slf
    }

    #[pyo3(signature = (kind=None, value=None, traceback=None, /))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (value, traceback);
        Span::exit(slf, kind);
    }

    /// Wraps a function so that each call of it runs within the span.
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(decorate) = DECORATOR.get(slf.py()) else {
            return Ok(function); // only before the package has been imported
        };
        decorate.bind(slf.py()).call1((slf, function))
    }

    /// Adds args, given as keywords, to the innermost open occurrence of the span in this task or thread.
    #[pyo3(signature = (**args))]
    fn arg(slf: &Bound<'_, Self>, args: Option<&Bound<'_, PyDict>>) {
        let text = Scratch::encode(args);
        lane::add_args(slf.py(), slf.as_ptr().addr(), &text.0);
    }

    /// Name of the span.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// Category of the span.
    #[getter]
    fn cat(&self, py: Python<'_>) -> PyResult<String> {
        let category = self.category.as_ref();
        names::category_text(category.map(|category| category.bind(py)))
    }

    /// Level of detail of the span.
    #[getter]
    fn level(&self) -> &'static str {
        names::level_name(self.named.level())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<sa_profile.Span {} ({})>",
            self.name.bind(py).repr()?,
            self.cat(py)?
        ))
    }
}

impl Span {
    /// Creates a span without args, which is not yet open.
    fn new(
        level: Level,
        category: Option<&Bound<'_, PyAny>>,
        name: &Bound<'_, PyAny>,
    ) -> PyResult<Span> {
        Ok(Span {
            named: names::intern(level, category, name)?,
            name: name.clone().unbind(),
            category: category.map(|category| category.clone().unbind()),
            args: SmallVec::new(),
            dict: None,
            is_drop_in: false,
            missed: Missed::new(0),
        })
    }

    /// Opens the span in the running asyncio task or thread.
    pub(crate) fn enter(slf: &Bound<'_, Self>) {
        let (span, py) = (slf.get(), slf.py());
        let event = Event {
            named: span.named,
            category: span.category.as_ref().map(|category| category.bind(py)),
            name: span.name.bind(py),
            args: &span.args,
        };
        lane::enter(&event, slf.as_ptr().addr(), &span.missed);
    }

    /// Ends the span in the running asyncio task or thread. `kind` is the type of the exception that ended it, if there was one.
    pub(crate) fn exit(slf: &Bound<'_, Self>, kind: Option<&Bound<'_, PyAny>>) {
        let span = slf.get();
        let owner = slf.as_ptr().addr();
        let error = kind.filter(|_| !span.is_drop_in);
        if error.is_none() && span.dict.is_none() {
            let none = if span.is_drop_in { NO_ARGS } else { b"" };
            return lane::exit(slf.py(), owner, &span.missed, none);
        }
        let mut args = Scratch::encode(span.dict.as_ref().map(|dict| dict.bind(slf.py())));
        if let Some(kind) = error {
            push_error(&mut args.0, kind);
        }
        if span.is_drop_in {
            profile::keep_member(&mut args.0);
        }
        lane::exit(slf.py(), owner, &span.missed, &args.0);
    }

    /// Ends the span of a Python function that ends with an exception of the type `kind`. If the exception closes the coroutine of a task that no longer
    /// exists, this is the only notification. A coroutine that is cancelled before its first step has no span.
    pub(crate) fn exit_unwound(slf: &Bound<'_, Self>, kind: &Bound<'_, PyAny>, is_closed: bool) {
        let (span, owner) = (slf.get(), slf.as_ptr().addr());
        let mut args = Scratch::empty();
        push_error(&mut args.0, kind);
        let end = End {
            args: &args.0,
            ns: None,
        };
        if !(is_closed && tasks::any_freed() && tasks::exit_freed(owner, end)) {
            lane::exit_here(slf.py(), owner, &span.missed, end);
        }
    }
}

/// Function of the package that wraps a function in a span.
static DECORATOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the function that a span, used as a decorator, calls to wrap a function. It is written in Python, which knows the kinds of functions.
#[pyfunction]
#[pyo3(signature = (decorate, /))]
pub(crate) fn set_decorator(py: Python<'_>, decorate: Py<PyAny>) {
    let _ = DECORATOR.set(py, decorate); // the package may be imported under a second name
}

/// Appends the arg `error` to encoded args: the name of the type of the exception that ended a span.
pub(crate) fn push_error(args: &mut Vec<u8>, kind: &Bound<'_, PyAny>) {
    let name = kind.getattr(intern!(kind.py(), "__name__"));
    let name = name
        .and_then(|name| name.extract::<String>())
        .unwrap_or_default();
    if !args.is_empty() {
        args.push(b',');
    }
    args.extend_from_slice(b"\"error\":");
    sa_recorder::Value::write(&name, args);
}

/// Creates a span whose args are in a dict, which is read when the span ends.
#[pyfunction]
#[pyo3(signature = (name, category, level, args, is_drop_in, /))]
pub(crate) fn dict_span(
    name: &Bound<'_, PyAny>,
    category: &Bound<'_, PyAny>,
    level: &str,
    args: Option<Py<PyDict>>,
    is_drop_in: bool,
) -> PyResult<Span> {
    Ok(Span {
        dict: args,
        is_drop_in,
        ..Span::new(names::level_of(level)?, Some(category), name)?
    })
}

/// Creates a span: a context manager and decorator that threads, tasks and recursion can share.
///
/// Arguments:
///     name: what takes the time.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     args: any other keywords. They are encoded now.
///
/// An example::
///
///     STEP = sa_profile.span("step", cat="engine")
///     with STEP:
///         STEP.arg(tokens=8)
///     with sa_profile.span("forward", batch=4):
///         pass
#[pyfunction]
#[pyo3(
    signature = (name, /, *, cat=None, level=None, **args),
    text_signature = "(name, /, *, cat='e2e', level='e2e', **args)"
)]
pub(crate) fn span(
    name: &Bound<'_, PyAny>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<Span> {
    let mut span = Span::new(names::level(level)?, cat, name)?;
    if !session::is_unrequested() {
        span.args = SmallVec::from_slice(&Scratch::encode(args).0);
    }
    Ok(span)
}

/// Begins a span that `end` ends, for code without a block.
///
/// Arguments:
///     name: what takes the time.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     args: any other keywords. They are encoded now.
///
/// An example::
///
///     sa_profile.begin("load", cat="model")
///     load()
///     sa_profile.end(bytes=4096)
#[pyfunction]
#[pyo3(
    signature = (name, /, *, cat=None, level=None, **args),
    text_signature = "(name, /, *, cat='e2e', level='e2e', **args)"
)]
pub(crate) fn begin(
    name: &Bound<'_, PyAny>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let text = Scratch::encode(args);
    let event = Event::new(names::level(level)?, cat, name, &text.0)?;
    lane::enter(&event, BEGUN, &BEGUN_MISSED);
    Ok(())
}

/// Ends the innermost span that `begin` opened in this task or thread. If no such span is open, stderr gets one line about it.
///
/// Arguments:
///     args: any keywords, added to the span's args.
///
/// An example::
///
///     sa_profile.begin("load")
///     sa_profile.end(bytes=4096)
#[pyfunction]
#[pyo3(signature = (**args))]
pub(crate) fn end(py: Python<'_>, args: Option<&Bound<'_, PyDict>>) {
    lane::exit(py, BEGUN, &BEGUN_MISSED, &Scratch::encode(args).0);
}
