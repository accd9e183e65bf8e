//! [`Span`]: what a call site records each time it runs, as a context manager and decorator.

mod bound_half;
mod facts;
mod nothing;
mod off;
pub(crate) mod open;
mod spare;
mod with_block;

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use pyo3::Borrowed;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use sa_recorder::Level;

use crate::call::args;
use crate::call::{self, Call};
use crate::event::Event;
use crate::lane::{self, BEGUN, BEGUN_MISSED, End, Missed};
use crate::names;
use crate::profile::{self, NO_ARGS};
use crate::scratch::Scratch;
use crate::span::facts::{Facts, Text};
use crate::span::spare::Settled;
use crate::{session, tasks, value};

/// A span that can be opened again and again, by threads, tasks and recursion at once.
///
/// It holds no times: they stand on the row of the code that runs::
///
///     STEP = sa_profile.span("step", cat="engine")
///     with STEP:
///         STEP.arg(tokens=8)
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Span {
    facts: Settled<Facts>,
    missed: Missed,
}

#[pymethods]
impl Span {
    fn __enter__<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
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

    /// Makes a function that runs within the span.
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        function: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(within) = DECORATOR.get(slf.py()) else {
            return Ok(function); // only before the package has been imported
        };
        within.bind(slf.py()).call1((slf, function))
    }

    /// Adds args, any keywords, to the innermost open occurrence of the span in this task or thread.
    #[pyo3(signature = (**args))]
    fn arg(slf: &Bound<'_, Self>, args: Option<&Bound<'_, PyDict>>) {
        let mut text = Vec::new();
        if let Some(args) = args {
            value::push_all(&mut text, args);
        }
        lane::add_args(slf.py(), slf.as_ptr().addr(), &text);
    }

    /// What takes the time.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.facts.get().name.clone_ref(py)
    }

    /// The category.
    #[getter]
    fn cat(&self, py: Python<'_>) -> PyResult<String> {
        let category = self.facts.get().category.as_ref();
        names::category_text(category.map(|category| category.bind(py)))
    }

    /// The level of detail.
    #[getter]
    fn level(&self) -> &'static str {
        names::level_name(self.facts.get().named.level())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<sa_profile.Span {} ({})>",
            self.facts.get().name.bind(py).repr()?,
            self.cat(py)?
        ))
    }
}

impl Span {
    /// Opens it on the lane of the running code.
    pub(crate) fn enter(slf: &Bound<'_, Self>) {
        let span = slf.get();
        span.with_event(slf.py(), |event| {
            lane::enter(event, slf.as_ptr().addr(), &span.missed);
        });
    }

    /// Ends it on the lane of the running code, with the type of the exception that ended it, if one did.
    pub(crate) fn exit(slf: &Bound<'_, Self>, kind: Option<&Bound<'_, PyAny>>) {
        let span = slf.get();
        let facts = span.facts.get();
        let owner = slf.as_ptr().addr();
        let error = kind.filter(|_| !facts.is_drop_in);
        if error.is_none() && facts.dict.is_none() {
            let none = if facts.is_drop_in { NO_ARGS } else { b"" };
            return lane::exit(slf.py(), owner, &span.missed, none);
        }
        let mut args = Scratch::take();
        if let Some(dict) = &facts.dict {
            value::push_all(&mut args.0, dict.bind(slf.py()));
        }
        if let Some(kind) = error {
            push_error(&mut args.0, kind);
        }
        if facts.is_drop_in {
            profile::keep_member(&mut args.0);
        }
        lane::exit(slf.py(), owner, &span.missed, &args.0);
    }

    /// Ends it by an exception that is being raised. Where that closes the coroutine of a task that is gone, nothing else says so. A coroutine that is cancelled before its
    /// first step has no span.
    pub(crate) fn exit_unwound(slf: &Bound<'_, Self>, kind: &Bound<'_, PyAny>, is_closed: bool) {
        let (span, owner) = (slf.get(), slf.as_ptr().addr());
        let mut args = Scratch::take();
        push_error(&mut args.0, kind);
        let end = End {
            args: &args.0,
            ns: None,
        };
        if !(is_closed && tasks::are_gone() && tasks::exit_gone(owner, end)) {
            lane::exit_here(slf.py(), owner, &span.missed, end);
        }
    }

    /// Whether nothing is recorded of it now, and nobody remembers an occurrence of it here.
    pub(crate) fn is_unrecorded(slf: &Bound<'_, Self>) -> bool {
        let span = slf.get();
        !sa_recorder::__wants(span.facts.get().named.level())
            && span.missed.load(Ordering::Relaxed) == 0
            && (session::is_unasked() || !lane::is_open(slf.as_ptr().addr()))
    }

    fn with_event<R>(&self, py: Python<'_>, act: impl FnOnce(&Event<'_, '_>) -> R) -> R {
        let facts = self.facts.get();
        act(&Event {
            named: facts.named,
            category: facts.category.as_ref().map(|category| category.bind(py)),
            name: facts.name.bind(py),
            args: &facts.args,
        })
    }
}

/// What makes a function that runs within a span.
static DECORATOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Takes the package's part of decorating: the kinds of functions are Python's.
#[pyfunction]
#[pyo3(signature = (within, /))]
fn set_decorator(py: Python<'_>, within: Py<PyAny>) {
    let _ = DECORATOR.set(py, within); // the package may be imported under a second name
}

/// What ended a span early.
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

/// A span whose args are a dict that is read when it ends.
fn dict_span(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let [name, category, level, args, is_drop_in] =
        call.positional(["name", "category", "level", "args", "is_drop_in"])?;
    let level = names::level(Some(&level))?;
    let mut facts = Facts::of(level, Some(&category), &name)?;
    facts.dict = args.extract()?;
    facts.is_drop_in = is_drop_in.is_truthy()?;
    Ok(spare::make(call.py, facts)?.into_ptr())
}

/// A span of the drop-in profiler, whose args are a dict that is read when it ends.
pub(crate) fn of_drop_in<'py>(
    level: Level,
    category: Option<&Bound<'py, PyAny>>,
    name: &Bound<'py, PyAny>,
    args: Option<Borrowed<'_, 'py, PyDict>>,
) -> PyResult<Bound<'py, Span>> {
    let mut facts = Facts::of(level, category, name)?;
    facts.dict = args.map(|args| args.to_owned().unbind());
    facts.is_drop_in = true;
    spare::make(name.py(), facts)
}

fn span(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let [name] = call.positional(["name"])?;
    if !session::is_unasked() {
        return new_span(call, &name);
    }
    match names::shared(call, &name) {
        Some(span) => Ok(span.into_ptr()),
        None => new_shared_span(call, &name),
    }
}

// Not inlined, nor the next one: what they need of the stack would cost a call that finds a shared span.
#[inline(never)]
fn new_span(call: &Call<'_, '_>, name: &Bound<'_, PyAny>) -> PyResult<*mut ffi::PyObject> {
    let keywords = args::keywords(call)?;
    let mut facts = Facts::of(keywords.level, keywords.category.as_deref(), name)?;
    facts.args = Text::from_slice(&keywords.text.0);
    Ok(spare::make(call.py, facts)?.into_ptr())
}

/// A span that the calls of a call site share, one at a time, in a process where nothing asks for recording. It has no args.
#[inline(never)]
fn new_shared_span(call: &Call<'_, '_>, name: &Bound<'_, PyAny>) -> PyResult<*mut ffi::PyObject> {
    let places = args::places(call);
    let category = places.0.and_then(|at| call.keyword(at));
    let level = places.1.and_then(|at| call.keyword(at));
    let level = names::level(level.as_deref())?;
    let facts = Facts::of(level, category.as_deref(), name)?;
    let span = spare::make(call.py, facts)?.into_any().unbind();
    names::share(call, name, level, places, &span);
    Ok(span.into_ptr())
}

fn begin(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    enter_named(call, BEGUN, &BEGUN_MISSED)?;
    Ok(call.py.None().into_ptr())
}

/// Opens what a call names, for this owner.
fn enter_named(call: &Call<'_, '_>, owner: usize, missed: &Missed) -> PyResult<()> {
    let [name] = call.positional(["name"])?;
    let keywords = args::keywords(call)?;
    let category = keywords.category.as_deref();
    let event = Event {
        named: names::named(keywords.level, category, &name)?,
        category,
        name: &name,
        args: &keywords.text.0,
    };
    lane::enter(&event, owner, missed);
    Ok(())
}

fn end(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let [] = call.positional([])?;
    lane::exit(call.py, BEGUN, &BEGUN_MISSED, &args::args(call).0);
    Ok(call.py.None().into_ptr())
}

call::entries! {
    span_entry => "span", span;
    dict_span_entry => "dict_span", dict_span;
    begin_entry => "begin", begin;
    end_entry => "end", end;
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Span>()?;
    with_block::add(module)?;
    nothing::add(module)?;
    off::add(module)?;
    open::add(module)?;
    module.add_function(wrap_pyfunction!(set_decorator, module)?)?;
    call::add(module, c"span", span_entry, SPAN)?;
    call::add(module, c"dict_span", dict_span_entry, DICT_SPAN)?;
    call::add(module, c"begin", begin_entry, BEGIN)?;
    call::add(module, c"end", end_entry, END)
}

const DICT_SPAN: &CStr = c"dict_span(name, category, level, args, is_drop_in, /)\n--\n\nA span whose args are a dict that is read when it ends.";

const SPAN: &CStr = cr#"span(name, /, *, cat='e2e', level='e2e', **args)
--

A span: a context manager and decorator, reusable by threads, tasks and recursion at once.

Arguments:
    name: what takes the time.
    cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
    args: any other keywords; they are read now.

An example::

    STEP = sa_profile.span("step", cat="engine")
    with STEP:
        STEP.arg(tokens=8)
    with sa_profile.span("forward", batch=4):
        pass
"#;

const BEGIN: &CStr = cr#"begin(name, /, *, cat='e2e', level='e2e', **args)
--

Begins a span that `end` ends, for code that has no block.

Arguments:
    name: what takes the time.
    cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
    args: any other keywords; they are read now.

An example::

    sa_profile.begin("load", cat="model")
    load()
    sa_profile.end(bytes=4096)
"#;

const END: &CStr = cr#"end(**args)
--

Ends the innermost span that `begin` began in this task or thread. Where there is none, that is said once on stderr.

Arguments:
    args: any keywords, as more args of the span.

An example::

    sa_profile.begin("load")
    sa_profile.end(bytes=4096)
"#;
