//! [`Exchange`]: a request that an ASGI application answers, from its arrival to the end of its answer.
//!
//! Under load a request waits for the event loop before the application gets it. The arg `waited_us` of its span is that time, with an
//! error of at most `uncertainty_us`. The times `elapsed_us` of its first chunk and `answered_us`, when the last part of the answer was
//! sent, include it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};
use sa_recorder::{FLOW_CATEGORY, FlowId, FlowPhase, Level, Track, now_ns};

use crate::async_span::{self, AsyncSpan};
use crate::attached::Attached;
use crate::call::misuse;
use crate::engine::http::arrival::Arrivals;
use crate::engine::http::{ANSWERED, RECEIVED, item, signed, with_arrivals};
use crate::event::Event;
use crate::point::{NOW, write_instant};
use crate::scratch::Scratch;
use crate::span::open::OpenSpan;
use crate::span::push_error;
use crate::value::push_native as push;
use crate::{task, tasks, thread_setup, value};

/// Key in a request's ASGI scope, set once the request has a span. A server may be hooked and its application may also use our middleware.
const HAS_SPAN: &str = "sa_profile.has_span";
const CATEGORY: &str = "http";
const LANE: &str = "http requests";
/// Category of events that belong to an engine's request.
const REQUEST: &str = "request";
/// Lowest status that refuses a request.
const REFUSED: i64 = 400;
/// Lowest status that means a failure of the server.
const FAILED: i64 = 500;
/// Maximum bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 16_384;
/// Maximum characters of a header that are recorded.
const MAX_HEADER_CHARACTERS: usize = 200;

static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// One request and its answer.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Exchange {
    #[pyo3(get)]
    number: u64,
    /// When the application got the request.
    #[pyo3(get)]
    began_ns: u64,
    /// True if level `verbose` is recorded.
    #[pyo3(get)]
    is_detailed: bool,
    /// True once the request has found its route.
    is_routed: AtomicBool,
    received_ns: i64,
    /// `None` if the protocol did not report the arrival.
    uncertainty_ns: Option<i64>,
    scope: Py<PyDict>,
    send: Py<PyAny>,
    track: SpanTrack,
    answer: Attached<Answer>,
}

/// The track of a request's span.
enum SpanTrack {
    /// A track that the request shares with earlier and later ones. A track for each task costs several times as much.
    Shared(AsyncSpan),
    /// The task's track, so that spans of the application are shown inside the request's span.
    Task(Option<Py<PyAny>>, Py<OpenSpan>),
}

/// The answer so far.
#[derive(Default)]
struct Answer {
    status: Option<i64>,
    /// The text of an answer that refuses the request.
    refusal: Option<Vec<u8>>,
    /// Ids of the engine's requests that this request became: internal and external ones.
    request_ids: Vec<Py<PyAny>>,
    external_ids: Vec<Py<PyAny>>,
    has_begun: bool,
    ended_ns: Option<u64>,
    /// Time at which the client disconnected before the end of its answer.
    left_ns: Option<u64>,
}

/// Starts to record an exchange (one HTTP request and its answer) and opens its span. `scope` and `send` are arguments of the ASGI application. With
/// `holds_spans`, the span is on the task's track, so that spans of the application are shown inside it. Returns `None` if nothing is recorded, if the request
/// is not HTTP, or if it already has a span.
#[pyfunction]
#[pyo3(signature = (scope, send, holds_spans, /))]
pub(crate) fn begin_exchange<'py>(
    scope: &Bound<'py, PyAny>,
    send: &Bound<'py, PyAny>,
    holds_spans: bool,
) -> PyResult<Option<Bound<'py, Exchange>>> {
    let py = scope.py();
    let Ok(scope) = scope.cast::<PyDict>() else {
        return Ok(None);
    };
    let levels = sa_recorder::Recorder::get().levels();
    let has_span = intern!(py, HAS_SPAN);
    if levels == sa_recorder::Levels::NONE || !is_http(scope) || scope.contains(has_span)? {
        return Ok(None);
    }
    let is_detailed = levels.0 & Level::Verbose.bit() != 0;
    let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    let track = open_span(scope, number, holds_spans || is_detailed)?;
    let began_ns = now_ns();
    let received = scope.get_item(intern!(py, RECEIVED))?;
    let received = received.and_then(|received| received.extract::<(i64, i64)>().ok());
    let exchange = Exchange {
        number,
        began_ns,
        is_detailed,
        is_routed: AtomicBool::new(false),
        received_ns: received.map_or(signed(began_ns), |(ns, _)| ns),
        uncertainty_ns: received.map(|(_, uncertainty_ns)| uncertainty_ns),
        scope: scope.clone().unbind(),
        send: send.clone().unbind(),
        track,
        answer: Attached::new(Answer::default()),
    };
    scope.set_item(has_span, true)?;
    Bound::new(py, exchange).map(Some)
}

fn is_http(scope: &Bound<'_, PyDict>) -> bool {
    let kind = scope.get_item(intern!(scope.py(), "type"));
    kind.is_ok_and(|kind| kind.is_some_and(|kind| is_text(&kind, CATEGORY)))
}

fn is_text(object: &Bound<'_, PyAny>, text: &str) -> bool {
    let object = object.cast::<PyString>();
    object.is_ok_and(|object| object.to_str().is_ok_and(|object| object == text))
}

/// Opens the span of an HTTP request. With `is_of_task` it is on the running task's track, otherwise on a track that it shares with other requests.
fn open_span(scope: &Bound<'_, PyDict>, number: u64, is_of_task: bool) -> PyResult<SpanTrack> {
    let py = scope.py();
    let mut text = Scratch::empty();
    for key in [intern!(py, "method"), intern!(py, "path")] {
        let found = scope.get_item(key)?;
        let found = found.unwrap_or_else(|| py.None().into_bound(py));
        value::push(&mut text.0, key, &found);
    }
    push(&mut text.0, "exchange", &number);
    if let Some(id) = header(scope, b"x-request-id") {
        push(&mut text.0, "x_request_id", id.as_str());
    }
    let name = intern!(py, "http.request").as_any();
    if !is_of_task {
        let level = (CATEGORY, Level::E2e);
        let span = async_span::open(name, level, Some(LANE), &text.0)?;
        return Ok(SpanTrack::Shared(AsyncSpan::new(span)));
    }
    let category = Some(intern!(py, CATEGORY).as_any());
    let span = OpenSpan::open(&Event::new(Level::E2e, category, name, &text.0)?)?;
    Ok(SpanTrack::Task(
        task::current(py).map(Bound::unbind),
        span.unbind(),
    ))
}

/// Returns the value of an HTTP request header, shortened to 200 characters. `name` is in lower case.
fn header(scope: &Bound<'_, PyDict>, name: &[u8]) -> Option<String> {
    let headers = scope.get_item(intern!(scope.py(), "headers")).ok()??;
    for header in headers.try_iter().ok()? {
        let header = header.ok()?;
        let key = header.get_item(0).ok()?;
        if key
            .cast::<PyBytes>()
            .is_ok_and(|key| key.as_bytes() == name)
        {
            let value = header.get_item(1).ok()?;
            let value = value.cast::<PyBytes>().ok()?.as_bytes();
            let characters = value.iter().map(|byte| char::from(*byte)); // Latin-1
            return Some(characters.take(MAX_HEADER_CHARACTERS).collect());
        }
    }
    None
}

/// Appends an arg to the encoded args in `text`. Its value is the time `ns`, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "exact up to a hundred days")]
fn push_us(text: &mut Vec<u8>, key: &str, ns: i64) {
    push(text, key, &(ns as f64 / 1000.0));
}

/// Appends an arg to the encoded args in `text`. Its value is the list of ids.
fn push_ids(text: &mut Vec<u8>, py: Python<'_>, key: &str, ids: &[Py<PyAny>]) {
    let ids = pyo3::types::PyList::new(py, ids.iter().map(|id| id.bind(py)));
    if let Ok(ids) = ids {
        value::push_named(text, key, ids.as_any());
    }
}

#[pymethods]
impl Exchange {
    /// Records that the application has found the route of the HTTP request. Returns false if that was already recorded.
    fn mark_routed(&self) -> bool {
        !self.is_routed.swap(true, Ordering::Relaxed)
    }

    /// Records an ASGI message with a part of the answer, and passes it on to the server. The application calls this as its `send`.
    #[pyo3(signature = (message, /))]
    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Err(error) = Exchange::record_part(slf, message) {
            misuse::failed(slf.py(), "Exchange.send", error)?;
        }
        slf.get().send.bind(slf.py()).call1((message,))
    }

    /// Handles an ASGI message from the server to the application. If it says that the client has disconnected, this records the time.
    #[pyo3(signature = (message, /))]
    fn client_message(&self, message: &Bound<'_, PyAny>) {
        let py = message.py();
        let kind = item(message, intern!(py, "type"));
        if kind.is_some_and(|kind| is_text(&kind, "http.disconnect")) {
            self.answer.with(py, |answer| {
                if answer.ended_ns.is_none() {
                    answer.left_ns.get_or_insert_with(now_ns);
                }
            });
        }
    }

    /// Records an instant for the time at which the first part of the answer left the process. That was between `handed_over_ns`, when the application passed
    /// it on, and now, the next turn of the event loop.
    #[pyo3(signature = (handed_over_ns, /))]
    fn first_chunk_left(&self, py: Python<'_>, handed_over_ns: u64) -> PyResult<()> {
        if !sa_recorder::__wants(Level::E2e) {
            return Ok(());
        }
        let elapsed_ns = signed(u64::midpoint(handed_over_ns, now_ns())) - self.received_ns;
        let ids = self.ids(py, |answer| &answer.request_ids);
        let mut text = Scratch::empty();
        push_ids(&mut text.0, py, "request_ids", &ids);
        push_us(&mut text.0, "elapsed_us", elapsed_ns);
        thread_setup::prepare_thread(py);
        let category = Some(intern!(py, CATEGORY).as_any());
        let name = intern!(py, "http.first_chunk").as_any();
        write_instant(&Event::new(Level::E2e, category, name, &text.0)?);
        Ok(())
    }

    /// Closes the span of the HTTP request, at the end of its exchange. `error` is the exception that ended the request, if there was one. `reason` is a
    /// Python function that turns the text of a refusal into args.
    #[pyo3(signature = (error, reason, /))]
    fn end(&self, error: Option<&Bound<'_, PyAny>>, reason: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = reason.py();
        let mut text = Scratch::empty();
        self.push_args(py, &mut text.0);
        let refusal = self.answer.with(py, |answer| answer.refusal.take());
        let mut done = Ok(());
        if let Some(refusal) = refusal.flatten() {
            match reason.call1((PyBytes::new(py, &refusal),)) {
                Ok(args) => push_reason(&mut text.0, &args, error.is_some()),
                Err(error) => done = misuse::failed(py, "reason", error),
            }
        }
        match &self.track {
            SpanTrack::Shared(span) => {
                if let Some(error) = error {
                    push_error(&mut text.0, error.get_type().as_any());
                }
                span.end_with(&text.0);
            }
            SpanTrack::Task(_, span) => OpenSpan::close_with(span.bind(py), error, &mut text.0),
        }
        done
    }

    /// Reports the Python objects that this object refers to, for the garbage collector. An application may store its `send` in the scope, for example in a
    /// request object, which forms a cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.scope)?;
        visit.call(&self.send)?;
        match &self.track {
            SpanTrack::Task(Some(task), _) => visit.call(task),
            _ => Ok(()),
        }
    }
}

/// Appends `args`, which explain why an HTTP request was refused. If an exception ended the request, its type is more useful than the arg `error` from the
/// answer, which is then left out.
fn push_reason(text: &mut Vec<u8>, args: &Bound<'_, PyAny>, has_error: bool) {
    let Ok(args) = args.cast::<PyDict>() else {
        return;
    };
    for (key, found) in args {
        if !(has_error && is_text(&key, "error")) {
            value::push(text, &key, &found);
        }
    }
}

impl Exchange {
    fn ids(
        &self,
        py: Python<'_>,
        select: impl FnOnce(&Answer) -> &Vec<Py<PyAny>>,
    ) -> Vec<Py<PyAny>> {
        let ids = self.answer.with(py, |answer| {
            let ids = select(answer).iter();
            ids.map(|id| id.clone_ref(py)).collect()
        });
        ids.unwrap_or_default()
    }

    /// Records what an ASGI message says about the answer: its status, that its first part is being sent, or that it is complete.
    fn record_part(slf: &Bound<'_, Self>, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, exchange) = (slf.py(), slf.get());
        let more = item(message, intern!(py, "more_body"));
        let has_more = more.is_some_and(|more| more.is_truthy().unwrap_or(false));
        // The middle parts of a successful answer are passed on without a closer look.
        let streams = |answer: &mut Answer| answer.has_begun && answer.refusal.is_none();
        if has_more && exchange.answer.with(py, streams) == Some(true) {
            return Ok(());
        }
        let Some(kind) = item(message, intern!(py, "type")) else {
            return Ok(());
        };
        if is_text(&kind, "http.response.start") {
            let status = message.get_item(intern!(py, "status"))?.extract::<i64>()?;
            exchange.answer.with(py, |answer| {
                answer.status = Some(status);
                answer.refusal = (status >= REFUSED).then(Vec::new);
            });
            return Ok(());
        }
        let body = item(message, intern!(py, "body"));
        let body = body.filter(|body| body.is_truthy().unwrap_or(false));
        if let Some(body) = body {
            Exchange::record_body(slf, &body)?;
        }
        if !has_more && is_text(&kind, "http.response.body") {
            let ended_ns = now_ns();
            exchange
                .answer
                .with(py, |answer| answer.ended_ns = Some(ended_ns));
            exchange
                .scope
                .bind(py)
                .set_item(intern!(py, ANSWERED), ended_ns)?;
            with_arrivals(py, Arrivals::answered);
        }
        Ok(())
    }

    fn record_body(slf: &Bound<'_, Self>, body: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, answer) = (slf.py(), &slf.get().answer);
        if answer.with(py, |answer| answer.refusal.is_some()) == Some(true) {
            let body = body_bytes(body)?;
            answer.with(py, |answer| {
                if let Some(text) = &mut answer.refusal {
                    let left = MAX_REFUSAL_BYTES.saturating_sub(text.len());
                    text.extend_from_slice(&body[..body.len().min(left)]);
                }
            });
        }
        let had_begun = answer.with(py, |answer| std::mem::replace(&mut answer.has_begun, true));
        if had_begun == Some(false) {
            let handed_over_ns = now_ns();
            let left = slf.getattr(intern!(py, "first_chunk_left"))?;
            let Some(running) = task::running_loop(py) else {
                return Ok(());
            };
            running.call_method1(intern!(py, "call_soon"), (left, handed_over_ns))?;
        }
        Ok(())
    }

    /// Records that this HTTP request has become a request of the engine. The flow arrow of the engine's request starts in the span of the HTTP request, even
    /// if another task runs. Returns false if it cannot start there.
    pub(crate) fn add_request(
        &self,
        request_id: &Bound<'_, PyAny>,
        external_id: &Bound<'_, PyAny>,
        flow: FlowId,
    ) -> PyResult<bool> {
        let py = request_id.py();
        let mut is_known = false;
        for other in self.ids(py, |answer| &answer.external_ids) {
            is_known |= other.bind(py).eq(external_id)?;
        }
        self.answer.with(py, |answer| {
            answer.request_ids.push(request_id.clone().unbind());
            if !is_known {
                answer.external_ids.push(external_id.clone().unbind());
            }
        });
        Ok(self.write(py, NOW, |track| {
            let (phase, category) = (FlowPhase::Start, FLOW_CATEGORY);
            track.flow(Level::E2e, phase, category, REQUEST, flow, self.began_ns);
        }))
    }

    /// Calls `event` with the track of the HTTP request, to write an event that began at `start_ns` there, even if another task runs. Returns false if the
    /// event does not fit there or the span is not recorded.
    pub(crate) fn write(&self, py: Python<'_>, start_ns: u64, event: impl FnOnce(Track)) -> bool {
        let track = match &self.track {
            SpanTrack::Shared(span) => span.track_since(start_ns),
            SpanTrack::Task(task, _) => {
                let task = task.as_ref().filter(|_| sa_recorder::__wants(Level::E2e));
                task.and_then(|task| tasks::track_since(task.bind(py), start_ns))
            }
        };
        if track.is_some() {
            thread_setup::prepare_thread(py);
        }
        track.map(event).is_some()
    }

    /// Appends the args of the span that are known only at its end: the status, times, and the ids of the engine's requests.
    fn push_args(&self, py: Python<'_>, text: &mut Vec<u8>) {
        let end = self.answer.with(py, |answer| {
            (answer.status, answer.ended_ns, answer.left_ns)
        });
        let (status, ended_ns, left_ns) = end.unwrap_or_default();
        let elapsed_ns = |ns: u64| signed(ns) - self.received_ns;
        match status {
            Some(status) => push(text, "status", &status),
            None => text.extend_from_slice(b"\"status\":null"),
        }
        let began_ns = elapsed_ns(self.began_ns);
        if let Some(uncertainty_ns) = self.uncertainty_ns.filter(|_| began_ns != 0) {
            push_us(text, "waited_us", began_ns);
            push_us(text, "uncertainty_us", uncertainty_ns);
        }
        if let Some(ended_ns) = ended_ns {
            push_us(text, "answered_us", elapsed_ns(ended_ns));
        }
        if let Some(left_ns) = left_ns {
            push_us(text, "disconnected_us", elapsed_ns(left_ns));
        }
        let ids = self.ids(py, |answer| &answer.request_ids);
        if !ids.is_empty() {
            push_ids(text, py, "request_ids", &ids);
            push_ids(
                text,
                py,
                "external_ids",
                &self.ids(py, |answer| &answer.external_ids),
            );
        }
        if status.is_some_and(|status| status >= FAILED) {
            push(text, "reason", "error");
            // A POST that never reached the engine still counts as a request. A GET, for example of /health, does not.
            let method = item(self.scope.bind(py), intern!(py, "method"));
            if ids.is_empty() && method.is_some_and(|method| is_text(&method, "POST")) {
                let id = format!("http-{}-{}", std::process::id(), self.number);
                push(text, "request_id", id.as_str());
            }
        }
    }
}

/// Copies the body of an ASGI message, which is bytes or another type of buffer.
fn body_bytes(body: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(body) = body.cast::<PyBytes>() {
        return Ok(body.as_bytes().to_vec());
    }
    Ok(PyByteArray::from(body)?.to_vec())
}
