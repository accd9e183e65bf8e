//! [`AsyncSpan`] and [`Request`]: spans on their own lane, which any thread or task may end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{AsyncSpan as Recorded, Level, Track, now_ns};

use crate::call::{id, integer};
use crate::event::Event;
use crate::point::NOW;
use crate::scratch::Scratch;
use crate::span::push_error;
use crate::{lane, names, thread_setup, value};

/// Name and category of a request's span.
const REQUEST: &str = "request";

/// An open span on a lane of its own. Any thread or task may end it::
///
///     work = sa_profile.async_span("work", lane="loader")
///     work.instant("halfway", bytes=2048)
///     work.end(bytes=4096)
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct AsyncSpan {
    /// `None` after the span has ended.
    span: Mutex<Option<Recorded>>,
}

#[pymethods]
impl AsyncSpan {
    /// Adds args to the span, given as keywords. Does nothing after the span has ended.
    #[pyo3(signature = (**args))]
    fn arg(&self, args: Option<&Bound<'_, PyDict>>) {
        let text = Scratch::encode(args); // before locking, because encoding may run Python code
        if let Some(span) = self.lock().as_mut() {
            span.raw(&text.0);
        }
    }

    /// Ends the span and adds args, given as keywords. A second call does nothing.
    #[pyo3(signature = (**args))]
    fn end(&self, args: Option<&Bound<'_, PyDict>>) {
        self.end_with(&Scratch::encode(args).0);
    }

    /// Records an instant on the span's track, now or at a given time.
    ///
    /// Arguments:
    ///     name: what happened.
    ///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
    ///     ts_ns: the time, in ns of `CLOCK_MONOTONIC`, by default now.
    ///     args: any other keywords.
    #[pyo3(
        signature = (name, /, *, cat=None, level=None, ts_ns=None, **args),
        text_signature = "($self, name, /, *, cat='e2e', level='e2e', ts_ns=None, **args)"
    )]
    fn instant(
        &self,
        name: &Bound<'_, PyAny>,
        cat: Option<&Bound<'_, PyAny>>,
        level: Option<&Bound<'_, PyAny>>,
        ts_ns: Option<&Bound<'_, PyAny>>,
        args: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let cat = names::category(cat, names::DEFAULT_CATEGORY)?;
        let ts_ns = integer::parse_optional("ts_ns", ts_ns)?;
        self.write_instant(name, (&cat, names::level(level)?), ts_ns, |text| {
            if let Some(args) = args {
                value::push_all(text, args);
            }
        })
    }

    /// Returns true if the span is recorded, so that costly args are worth computing.
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
        self.end_with(&args);
    }
}

impl AsyncSpan {
    pub(crate) fn new(span: Recorded) -> AsyncSpan {
        AsyncSpan {
            span: Mutex::new(Some(span)),
        }
    }

    /// Ends the span and adds the encoded args in `text` to it. Does nothing if the span has already ended.
    pub(crate) fn end_with(&self, text: &[u8]) {
        let ended = self.lock().take();
        if let Some(mut span) = ended {
            span.raw(text);
        }
    }

    /// Returns the track that shows the span, for writing an event that began at `start_ns`. Returns `None` if the span is not recorded, or if the event would
    /// overlap an earlier span there.
    pub(crate) fn track_since(&self, start_ns: u64) -> Option<Track> {
        self.lock()
            .as_ref()
            .and_then(|span| span.track_since(start_ns))
    }

    /// Writes an instant on the span's track or, after the span has ended, on the track of the running task or thread. `args` appends the encoded args. On a
    /// thread's own track, `ts_ns` is ignored and the time is now.
    pub(crate) fn write_instant(
        &self,
        name: &Bound<'_, PyAny>,
        (category, level): (&str, Level),
        ts_ns: Option<u64>,
        args: impl FnOnce(&mut Vec<u8>),
    ) -> PyResult<()> {
        if !sa_recorder::__wants(level) {
            return Ok(());
        }
        let py = name.py();
        thread_setup::prepare_thread(py);
        let mut text = Scratch::empty();
        args(&mut text.0);
        let category = PyString::intern(py, category);
        let event = Event::new(level, Some(category.as_any()), name, &text.0)?;
        match self.track_since(NOW).or_else(|| lane::task_track(py, NOW)) {
            Some(track) => event.instant_on_track(track, ts_ns.unwrap_or_else(now_ns)),
            None => event.instant_on_thread(),
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recorded>> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open request: an async span whose events carry the request's id::
///
///     request = sa_profile.request("cmpl-1", prompt_tokens=12)
///     request.instant("first_token")
///     request.end(reason="stop")
#[pyclass(frozen, extends = AsyncSpan, module = "sa_profile")]
pub(crate) struct Request {
    /// The request id, as text.
    #[pyo3(get)]
    request_id: Py<PyString>,
}

#[pymethods]
impl Request {
    /// Records an instant of the request, on its track.
    ///
    /// Arguments:
    ///     name: what happened.
    ///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
    ///     ts_ns: the time, in ns of `CLOCK_MONOTONIC`, by default now.
    ///     args: any other keywords.
    #[pyo3(
        signature = (name, /, *, cat=None, level=None, ts_ns=None, **args),
        text_signature = "($self, name, /, *, cat='request', level='e2e', ts_ns=None, **args)"
    )]
    fn instant(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyAny>,
        cat: Option<&Bound<'_, PyAny>>,
        level: Option<&Bound<'_, PyAny>>,
        ts_ns: Option<&Bound<'_, PyAny>>,
        args: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let span = slf.as_super().get();
        let id = &slf.get().request_id;
        let cat = names::category(cat, REQUEST)?;
        let ts_ns = integer::parse_optional("ts_ns", ts_ns)?;
        span.write_instant(name, (&cat, names::level(level)?), ts_ns, |text| {
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

/// Opens an async span on the lane with this name or, if `lane` is `None`, on a lane of its own. If the level is off, returns a span that records nothing.
pub(crate) fn open(
    name: &Bound<'_, PyAny>,
    (category, level): (&str, Level),
    lane: Option<&str>,
    args: &[u8],
) -> PyResult<Recorded> {
    if !sa_recorder::__wants(level) {
        return Ok(Recorded::off());
    }
    thread_setup::prepare_thread(name.py());
    let category = PyString::intern(name.py(), category);
    let event = Event::new(level, Some(category.as_any()), name, args)?;
    Ok(event.open_on_lane(None, lane, event.uninterned_texts().as_ref()))
}

/// Opens a span on its own lane. Any thread or task may end it.
///
/// Arguments:
///     name: what takes the time.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     lane: name of the lane, to which " (async)" is added: a str, an int or a UUID. If spans of one lane overlap, each gets a track.
///     args: any other keywords.
///
/// An example::
///
///     work = sa_profile.async_span("work", lane="loader", bytes=4096)
///     work.end()
#[pyfunction]
#[pyo3(
    signature = (name, /, *, cat=None, level=None, lane=None, **args),
    text_signature = "(name, /, *, cat='e2e', level='e2e', lane=None, **args)"
)]
pub(crate) fn async_span(
    name: &Bound<'_, PyAny>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    lane: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<AsyncSpan> {
    let cat = names::category(cat, names::DEFAULT_CATEGORY)?;
    let level = names::level(level)?;
    let lane = lane.map(|lane| id::text("lane", lane)).transpose()?;
    let lane = lane.as_ref().map(|lane| lane.to_string_lossy());
    let text = Scratch::encode(args);
    let span = open(name, (&cat, level), lane.as_deref(), &text.0)?;
    Ok(AsyncSpan::new(span))
}

/// Opens the span of a request on its own lane. Any thread or task may end it.
///
/// Arguments:
///     request_id: a str, an int or a UUID. The span and its instants carry it as text.
///     name: of the span, `"request"` by default.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     args: any other keywords.
///
/// An example::
///
///     with sa_profile.request("cmpl-1", prompt_tokens=12) as request:
///         request.instant("first_token")
#[pyfunction]
#[pyo3(
    signature = (request_id, /, *, name=None, cat=None, level=None, **args),
    text_signature = "(request_id, /, *, name=None, cat='request', level='e2e', **args)"
)]
pub(crate) fn request<'py>(
    request_id: &Bound<'py, PyAny>,
    name: Option<Bound<'py, PyAny>>,
    cat: Option<&Bound<'py, PyAny>>,
    level: Option<&Bound<'py, PyAny>>,
    args: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Request>> {
    let cat = names::category(cat, REQUEST)?;
    let level = names::level(level)?;
    let py = request_id.py();
    let name = name.unwrap_or_else(|| PyString::intern(py, REQUEST).into_any());
    let request_id = id::text("request_id", request_id)?.unbind();
    let mut text = Scratch::empty();
    push_request(&mut text.0, py, &request_id, args);
    let span = AsyncSpan::new(open(&name, (&cat, level), None, &text.0)?);
    Bound::new(py, (Request { request_id }, span))
}
