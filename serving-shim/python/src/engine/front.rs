//! [`FrontRequests`]: the requests whose outputs an API server waits for.

mod admitted;

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};
use sa_recorder::{FLOW_CATEGORY, FlowPhase, Level, Levels, Recorder, now_ns};

use crate::async_span::AsyncSpan;
use crate::attached::Attached;
use crate::call::{id, misuse};
use crate::engine::http::exchange::Exchange;
use crate::engine::http::{step_began, step_ended};
use crate::engine::layout::OutputLayout;
use crate::engine::outputs::{OutputCounter, OutputCounts, Special};
use crate::event::Event;
use crate::point::{flow_id, write_flow};
use crate::scratch::Scratch;
use crate::span::open::OpenSpan;
use crate::value::{self, push_native as push};
use admitted::Admitted;

/// Name and category of a request's span, and the name of its flow.
const REQUEST: &str = "request";

/// Requests whose outputs a process waits for, by their internal ids. Only the event loop's thread uses them.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct FrontRequests {
    #[pyo3(get)]
    open: Py<PyDict>,
    layout: Py<OutputLayout>,
    outputs: OutputCounter,
    /// The engine's own part.
    engine: Py<PyAny>,
    /// Names of the spans of the calls that admit a request and process a step's outputs.
    admission_name: Py<PyString>,
    step_name: Py<PyString>,
    /// Attribute of the observed call's result with the ids of requests that a stop text has ended.
    stopped: Option<Py<PyString>>,
    /// True if a step came while recording was off, and no step has been recorded since.
    has_skipped: AtomicBool,
}

/// One request, from its admission to its last output.
#[pyclass(frozen, extends = OutputCounts, module = "sa_profile")]
pub(crate) struct FrontRequest {
    request_id: Py<PyAny>,
    #[pyo3(get)]
    external_id: Py<PyAny>,
    /// The engine's object with the request's stamps, or Python's `None`.
    stamps: Py<PyAny>,
    span: AsyncSpan,
    cached_tokens: Attached<Option<Py<PyAny>>>,
}

/// The call that admits a request, until it returns.
#[pyclass(frozen, module = "sa_profile")]
struct Admission {
    front: Py<FrontRequests>,
    /// The request's id, or `None` if the request was already open, so that this is a further chunk of a streamed input.
    request_id: Option<Py<PyAny>>,
    began_ns: u64,
    span: Option<Py<OpenSpan>>,
}

/// The call that turns a step's outputs into text and passes them to the waiting requests, until it returns.
#[pyclass(frozen, module = "sa_profile")]
struct FrontStep {
    front: Py<FrontRequests>,
    outputs: Py<PyAny>,
    /// Time at which the engine's frontend received the outputs.
    ts_ns: u64,
    began_ns: u64,
    /// Result of `step_began`, for [`step_ended`].
    since: i64,
    span: Py<OpenSpan>,
}

fn is_recording() -> bool {
    Recorder::get().levels() != Levels::NONE
}

/// Opens a span with the category `serving` on the track of the running task or thread.
fn open<'py>(name: &Bound<'py, PyString>, args: &[u8]) -> PyResult<Bound<'py, OpenSpan>> {
    let category = Some(intern!(name.py(), "serving").as_any());
    OpenSpan::open(&Event::new(Level::E2e, category, name, args)?)
}

#[pymethods]
impl FrontRequests {
    /// Creates an empty collection.
    ///
    /// Arguments:
    ///     layout: how the outputs of a step are read.
    ///     engine: the engine's own part, with the methods `reason(finish_reason)`, which returns the API's name for the reason; `cached_tokens(outputs, at)`,
    ///         which returns the number of cached prompt tokens of a request's first output, or `None`; and `moment(stamps, name)`, which returns the engine's
    ///         time in ns of `request.first_token` or `request.answered`, or `None`. The last one is called only for requests that were admitted with `stamps`.
    ///     admission_name, step_name: names of the spans of the observed calls.
    ///     stopped: name of an attribute of what the call for a step's outputs returns: ids of further requests whose answers are complete, because their text
    ///         contains a stop text.
    #[new]
    #[pyo3(signature = (layout, engine, admission_name, step_name, stopped=None, /))]
    fn new(
        layout: &Bound<'_, OutputLayout>,
        engine: Py<PyAny>,
        admission_name: Py<PyString>,
        step_name: Py<PyString>,
        stopped: Option<Py<PyString>>,
    ) -> FrontRequests {
        FrontRequests {
            open: PyDict::new(layout.py()).unbind(),
            layout: layout.clone().unbind(),
            outputs: OutputCounter::new(layout),
            engine,
            admission_name,
            step_name,
            stopped,
            has_skipped: AtomicBool::new(false),
        }
    }

    /// Starts to observe the call in which the engine's frontend accepts a request. Opens the request's span and starts its flow arrow. Returns the function to
    /// call when the observed call ends, or `None` if nothing is recorded.
    ///
    /// Arguments:
    ///     request_id: the id that all of the engine's processes use.
    ///     external_id: the id that the client knows.
    ///     prompt_tokens: the length of the prompt, or `None` if it has no tokens.
    ///     arrival_ns: when the engine's own figures for this request begin, or `None`.
    ///     options: a function that returns the client's options as a dict, such as `max_tokens` and `priority`. It is called only for a new request.
    ///     exchange: the HTTP request that it comes from, or `None`.
    ///     stamps: the engine's object with the request's stamps, for `moment`.
    #[pyo3(signature = (request_id, external_id, prompt_tokens, arrival_ns, options, exchange, stamps=None, /))]
    #[expect(
        clippy::too_many_arguments,
        reason = "what an engine knows about a new request"
    )]
    fn admit<'py>(
        slf: &Bound<'py, Self>,
        request_id: &Bound<'py, PyAny>,
        external_id: &Bound<'py, PyAny>,
        prompt_tokens: Option<u64>,
        arrival_ns: Option<u64>,
        options: &Bound<'py, PyAny>,
        exchange: Option<&Bound<'py, Exchange>>,
        stamps: Option<Py<PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !is_recording() {
            return Ok(None);
        }
        let (py, front) = (slf.py(), slf.get());
        let new = Admitted {
            request_id: request_id.clone(),
            external_id: external_id.clone(),
            prompt_tokens,
        };
        // A flow arrow starts in a span: the one of the HTTP request if there is one, otherwise this one.
        let has_span = exchange.is_none() || sa_recorder::__wants(Level::Verbose);
        let name = front.admission_name.bind(py);
        let span = has_span.then(|| new.open_span(name)).transpose()?;
        let began_ns = now_ns();
        let is_new = !front.open.bind(py).contains(request_id)?;
        if is_new {
            new.record_preprocessing(arrival_ns, exchange);
            new.begin(front.open.bind(py), options, stamps)?;
            if let Err(error) = new.link(exchange) {
                misuse::failed(py, "FrontRequests.admit", error)?;
            }
        }
        let admission = Admission {
            front: slf.clone().unbind(),
            request_id: is_new.then(|| request_id.clone().unbind()),
            began_ns,
            span: span.map(Bound::unbind),
        };
        let leave = Bound::new(py, admission)?.getattr(intern!(py, "leave"))?;
        Ok(Some(leave))
    }

    /// Starts to observe the call in which the engine's frontend processes the outputs of one step, and opens its span. Returns the function to call when the
    /// observed call ends, or `None` if nothing is recorded.
    ///
    /// Arguments:
    ///     outputs: the outputs, in the layout of this collection.
    ///     ts_ns: the time that the engine's own metrics use for these outputs, by default now.
    ///     engine_ts_ns: when the engine sent the outputs, from which it computes its time between tokens, or `None`.
    #[pyo3(signature = (outputs, ts_ns=None, engine_ts_ns=None, /))]
    fn step<'py>(
        slf: &Bound<'py, Self>,
        outputs: &Bound<'py, PyAny>,
        ts_ns: Option<u64>,
        engine_ts_ns: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, front) = (slf.py(), slf.get());
        // The first step recorded after a pause may follow outputs that were not recorded. The time since the last recorded step is then not a time between tokens.
        let is_off = !sa_recorder::__wants(Level::E2e);
        let is_after_pause = front.has_skipped.swap(is_off, Ordering::Relaxed) && !is_off;
        if front.open.bind(py).is_empty() && !is_recording() {
            return Ok(None);
        }
        let ts_ns = ts_ns.unwrap_or_else(now_ns);
        let since = step_began(py);
        let mut text = Scratch::empty();
        push(&mut text.0, "outputs", &front.layout.get().count(outputs)?);
        // It is from the clock of the engine's host, so it is not a time of this trace.
        if let Some(ns) = engine_ts_ns {
            push(&mut text.0, "engine_ts_ns", &ns);
        }
        if is_after_pause {
            push(&mut text.0, "after_pause", &true);
        }
        let span = open(front.step_name.bind(py), &text.0)?;
        let step = FrontStep {
            front: slf.clone().unbind(),
            outputs: outputs.clone().unbind(),
            ts_ns,
            began_ns: now_ns(),
            since,
            span: span.unbind(),
        };
        let leave = Bound::new(py, step)?.getattr(intern!(py, "leave"))?;
        Ok(Some(leave))
    }

    /// Ends the span and the flow arrow of a request, if the request is open. The arrow ends in the last span that began before `ts_ns`. `reason` is the
    /// request's finish reason, and `error` the type of the exception that ended it.
    #[pyo3(signature = (request_id, reason, ts_ns, error=None, /))]
    fn end(
        &self,
        request_id: &Bound<'_, PyAny>,
        reason: &Bound<'_, PyAny>,
        ts_ns: u64,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match self.remove(request_id)? {
            Some(request) => request.get().end(&request, reason, ts_ns, error),
            None => Ok(()),
        }
    }

    /// Reports the Python objects that this object refers to, for the garbage collector. `engine` belongs to the package, whose modules refer back to this
    /// object. Without this, none of them would be freed when the program ends.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.open)?;
        visit.call(&self.engine)
    }
}

impl FrontRequests {
    /// Removes a request from the open requests and returns it. Returns `None` if no request with this id is open.
    fn remove<'py>(
        &self,
        request_id: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, FrontRequest>>> {
        let py = request_id.py();
        self.outputs.forget(py);
        let open = self.open.bind(py);
        let Some(request) = open.get_item(request_id)? else {
            return Ok(None);
        };
        open.del_item(request_id)?;
        Ok(Some(request.cast_into()?))
    }

    /// Records that a request's answer is complete, and ends the request. Does nothing if the request is not open. `times` are the time of its last output and
    /// the time at which its flow arrow ends.
    fn end_answered(
        &self,
        request_id: &Bound<'_, PyAny>,
        reason: &Bound<'_, PyAny>,
        (ts_ns, flow_ns): (u64, u64),
    ) -> PyResult<()> {
        let Some(request) = self.remove(request_id)? else {
            return Ok(());
        };
        let name = intern!(request_id.py(), "request.answered");
        let ts_ns = self.moment(request.get(), name)?.unwrap_or(ts_ns);
        request.get().instant(name, ts_ns, Some(reason))?;
        request.get().end(&request, reason, flow_ns, None)
    }

    /// Returns the engine's own time in ns of one of a request's moments, or `None` if it has none.
    fn moment(&self, request: &FrontRequest, name: &Bound<'_, PyString>) -> PyResult<Option<u64>> {
        let py = name.py();
        let stamps = request.stamps.bind(py);
        if stamps.is_none() {
            return Ok(None);
        }
        let engine = self.engine.bind(py);
        let time = engine.call_method1(intern!(py, "moment"), (stamps, name))?;
        time.extract()
    }
}

#[pymethods]
impl FrontRequest {
    /// Records an instant on the request's track at the time `ts_ns`. Its args are the request id and, if given, the finish reason.
    #[pyo3(signature = (name, ts_ns, reason=None, /))]
    fn instant(
        &self,
        name: &Bound<'_, PyString>,
        ts_ns: u64,
        reason: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let id = id::text("request_id", self.request_id.bind(name.py()))?;
        let level = (REQUEST, Level::E2e);
        self.span.write_instant(name, level, Some(ts_ns), |text| {
            value::push_named(text, "request_id", id.as_any());
            if let Some(reason) = reason {
                value::push_named(text, "reason", reason);
            }
        })
    }
}

impl FrontRequest {
    /// Records an instant for the request's first output token at the time `ts_ns`, and stores the number of cached prompt tokens.
    fn first_token(&self, cached: &Bound<'_, PyAny>, ts_ns: u64) -> PyResult<()> {
        let py = cached.py();
        self.instant(intern!(py, "request.first_token"), ts_ns, None)?;
        if !cached.is_none() {
            let cached = cached.clone().unbind();
            self.cached_tokens.with(py, |tokens| *tokens = Some(cached));
        }
        Ok(())
    }

    /// Ends the request's flow arrow at the time `ts_ns`, and its span now. Adds the finish reason, the token counts and the error to the span.
    fn end(
        &self,
        slf: &Bound<'_, Self>,
        reason: &Bound<'_, PyAny>,
        ts_ns: u64,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        if sa_recorder::__wants(Level::E2e) {
            let id = flow_id(self.request_id.bind(py), false)?;
            let names = (FLOW_CATEGORY, REQUEST);
            write_flow(py, Level::E2e, FlowPhase::End, names, id, Some(ts_ns));
        }
        let mut text = Scratch::empty();
        value::push_named(&mut text.0, "reason", reason);
        let tokens = slf.as_super().get().output_tokens();
        push(&mut text.0, "output_tokens", &tokens);
        let cached = self.cached_tokens.with(py, Option::take).flatten();
        let cached = cached.unwrap_or_else(|| py.None());
        value::push_named(&mut text.0, "cached_tokens", cached.bind(py));
        if let Some(error) = error {
            value::push_named(&mut text.0, "error", error);
        }
        self.span.end_with(&text.0);
        Ok(())
    }
}

#[pymethods]
impl Admission {
    /// Ends the span of the observed call when the call ends. If the call raised `error`, the engine has refused the request, so this ends the request too.
    #[pyo3(signature = (result, error, /))]
    fn leave(&self, result: &Bound<'_, PyAny>, error: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = result.py();
        let mut done = Ok(());
        if error.is_some()
            && let Some(request_id) = &self.request_id
        {
            let reason = intern!(py, "error").as_any();
            let front = self.front.get();
            done = front.end(request_id.bind(py), reason, self.began_ns, None);
        }
        if let Some(span) = &self.span {
            OpenSpan::close(span.bind(py), error, None, None);
        }
        done
    }
}

#[pymethods]
impl FrontStep {
    /// Ends the span of the observed call when the call ends. Counts the step's output tokens for their requests.
    #[pyo3(signature = (result, error, /))]
    fn leave(&self, result: &Bound<'_, PyAny>, error: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = result.py();
        let span = self.span.bind(py);
        span.get().set_end();
        let mut text = Scratch::empty();
        let done = self.count(result, &mut text.0);
        if done.is_err() {
            text.0.clear();
        }
        OpenSpan::close_with(span, error, &mut text.0);
        step_ended(py, self.since);
        done
    }
}

impl FrontStep {
    /// Counts the step's output tokens for their requests, and ends the requests that are complete. `result` is what the observed call returned. Appends args
    /// that describe the outputs to `text`.
    fn count(&self, result: &Bound<'_, PyAny>, text: &mut Vec<u8>) -> PyResult<()> {
        let py = result.py();
        let front = self.front.get();
        let (outputs, open) = (self.outputs.bind(py), front.open.bind(py));
        let described = front
            .outputs
            .describe(outputs, open, &mut |output| self.handle_output(py, output))?;
        text.extend_from_slice(&described);
        let stopped = front.stopped.as_ref().map(|name| name.bind(py));
        if let Some(stopped) = stopped.and_then(|name| result.getattr_opt(name).ok()?) {
            let reason = intern!(py, "stop").as_any();
            for request_id in stopped.try_iter()? {
                front.end_answered(&request_id?, reason, (self.ts_ns, self.began_ns))?;
            }
        }
        Ok(())
    }

    /// Handles the first or the last output of a request: records the first token, counts the output's tokens, and ends the request if it is finished. Ignores
    /// a request that is not open.
    fn handle_output(&self, py: Python<'_>, output: &Special<'_, '_>) -> PyResult<()> {
        let Some(request) = output.request else {
            return Ok(());
        };
        let front = self.front.get();
        let engine = front.engine.bind(py);
        let tally = request.get();
        if output.tokens > 0 {
            if tally.output_tokens() == 0 {
                let request = request.cast::<FrontRequest>()?.get();
                let name = intern!(py, "request.first_token");
                let ts_ns = front.moment(request, name)?.unwrap_or(self.ts_ns);
                let at = (self.outputs.bind(py), output.at);
                let cached = engine.call_method1(intern!(py, "cached_tokens"), at)?;
                request.first_token(&cached, ts_ns)?;
            }
            tally.add(output.tokens);
        }
        if output.finish_reason.is_none() {
            return Ok(());
        }
        let reason = engine.call_method1(intern!(py, "reason"), (&output.finish_reason,))?;
        front.end_answered(&output.request_id, &reason, (self.ts_ns, self.began_ns))
    }
}
