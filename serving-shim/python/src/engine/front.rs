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
use crate::engine::outputs::{OutputCounter, OutputCounts};
use crate::engine::stamps;
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
    outputs: OutputCounter,
    /// Function that returns the API's name for a finish reason.
    reason: Py<PyAny>,
    /// Finish reasons and their names, as far as they have occurred.
    reasons: Attached<Vec<(Py<PyAny>, Py<PyAny>)>>,
    /// True if a step came while recording was off, and no step has been recorded since.
    has_skipped: AtomicBool,
}

/// One request, from its admission to its last output.
#[pyclass(frozen, extends = OutputCounts, module = "sa_profile")]
pub(crate) struct FrontRequest {
    request_id: Py<PyAny>,
    #[pyo3(get)]
    external_id: Py<PyAny>,
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
    /// Time at which vLLM received the outputs.
    ts_ns: u64,
    began_ns: u64,
    /// Result of `step_began`, for [`step_ended`].
    since: i64,
    span: Py<OpenSpan>,
}

/// Returns the value of a Python object's attribute. Returns `None` if there is no such attribute or its value is Python's `None`.
fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(object.getattr_opt(name)?.filter(|found| !found.is_none()))
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
    #[new]
    #[pyo3(signature = (reason, /))]
    fn new(py: Python<'_>, reason: Py<PyAny>) -> FrontRequests {
        FrontRequests {
            open: PyDict::new(py).unbind(),
            outputs: OutputCounter::new(),
            reason,
            reasons: Attached::new(Vec::new()),
            has_skipped: AtomicBool::new(false),
        }
    }

    /// Starts to observe the call in which vLLM accepts a request. Opens the request's span and starts its flow arrow. Returns the function to call when the
    /// observed call ends, or `None` if nothing is recorded. `new` is vLLM's request object. If a client wants several answers, each is a request of its own,
    /// and `parent` is the client's request. `exchange` is the HTTP request that it comes from.
    #[pyo3(signature = (new, parent, exchange, /))]
    fn admit<'py>(
        slf: &Bound<'py, Self>,
        new: &Bound<'py, PyAny>,
        parent: Option<&Bound<'py, PyAny>>,
        exchange: Option<&Bound<'py, Exchange>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !is_recording() {
            return Ok(None);
        }
        let py = slf.py();
        let new = Admitted::read(new, parent)?;
        // A flow arrow starts in a span: the one of the HTTP request if there is one, otherwise this one.
        let has_span = exchange.is_none() || sa_recorder::__wants(Level::Verbose);
        let span = has_span.then(|| new.open_span()).transpose()?;
        let began_ns = now_ns();
        let is_new = !slf.get().open.bind(py).contains(&new.request_id)?;
        if is_new {
            new.record_preprocessing(exchange);
            new.begin(slf.get().open.bind(py))?;
            if let Err(error) = new.link(exchange) {
                misuse::failed(py, "FrontRequests.admit", error)?;
            }
        }
        let admission = Admission {
            front: slf.clone().unbind(),
            request_id: is_new.then(|| new.request_id.clone().unbind()),
            began_ns,
            span: span.map(Bound::unbind),
        };
        let leave = Bound::new(py, admission)?.getattr(intern!(py, "leave"))?;
        Ok(Some(leave))
    }

    /// Starts to observe the call in which vLLM processes the outputs of one engine step, and opens its span. Returns the function to call when the observed
    /// call ends, or `None` if nothing is recorded.
    #[pyo3(signature = (outputs, engine_stamp, statistics, /))]
    fn step<'py>(
        slf: &Bound<'py, Self>,
        outputs: &Bound<'py, PyAny>,
        engine_stamp: &Bound<'py, PyAny>,
        statistics: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, front) = (slf.py(), slf.get());
        // The first step recorded after a pause may follow outputs that were not recorded. The time since the last recorded step is then not a time between tokens.
        let is_off = !sa_recorder::__wants(Level::E2e);
        let is_after_pause = front.has_skipped.swap(is_off, Ordering::Relaxed) && !is_off;
        if front.open.bind(py).is_empty() && !is_recording() {
            return Ok(None);
        }
        // vLLM's metrics use this time for the step's outputs.
        let stamp = match statistics.is_none() {
            true => None,
            false => attribute(statistics, intern!(py, "iteration_timestamp"))?,
        };
        let ts_ns = stamp.and_then(|stamp| stamps::from_wall_clock(&stamp));
        let ts_ns = ts_ns.unwrap_or_else(now_ns);
        let since = step_began(py);
        let mut text = Scratch::empty();
        push(&mut text.0, "outputs", &outputs.len()?);
        // Time at which the engine sent the outputs, from which vLLM computes its time between tokens. It is from the clock of the engine's host, so it is not a time of this trace.
        if let Some(ns) = stamps::from_monotonic(engine_stamp) {
            push(&mut text.0, "engine_ts_ns", &ns);
        }
        if is_after_pause {
            push(&mut text.0, "after_pause", &true);
        }
        let span = open(intern!(py, "OutputProcessor.process_outputs"), &text.0)?;
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

    /// Reports the Python objects that this object refers to, for the garbage collector. `reason` is a function of the package, whose modules refer back to
    /// this object. Without this, none of them would be freed when the program ends.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.open)?;
        visit.call(&self.reason)
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

    /// Returns the name that the API uses for vLLM's finish reason, and caches it.
    fn reason_name<'py>(&self, reason: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        /// More reasons than any version has.
        const MAX_REASONS: usize = 16;
        let py = reason.py();
        let cached = self.reasons.with(py, |reasons| {
            let mut reasons = reasons.iter();
            let cached = reasons.find(|(cached, _)| cached.is(reason));
            cached.map(|(_, name)| name.clone_ref(py))
        });
        if let Some(name) = cached.flatten() {
            return Ok(name.into_bound(py));
        }
        let name = self.reason.bind(py).call1((reason,))?;
        let pair = (reason.clone().unbind(), name.clone().unbind());
        self.reasons.with(py, |reasons| {
            if reasons.len() < MAX_REASONS {
                reasons.push(pair);
            }
        });
        Ok(name)
    }
}

impl FrontRequest {
    /// Records an instant on the request's track at the time `ts_ns`. Its args are the request id and, if given, the finish reason.
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

    /// Records an instant for the request's first output token at the time `ts_ns`. Stores the number of cached prompt tokens, which `output` contains.
    fn first_token(&self, output: &Bound<'_, PyAny>, ts_ns: u64) -> PyResult<()> {
        let py = output.py();
        self.instant(intern!(py, "request.first_token"), ts_ns, None)?;
        let cached = match attribute(output, intern!(py, "prefill_stats"))? {
            Some(stats) => Some(stats.getattr(intern!(py, "num_cached_tokens"))?),
            None => output.getattr_opt(intern!(py, "num_cached_tokens"))?, // older versions have it in each output
        };
        if let Some(cached) = cached {
            self.cached_tokens
                .with(py, |tokens| *tokens = Some(cached.unbind()));
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
    /// Ends the span of the observed call when the call ends. If the call raised `error`, vLLM has refused the request, so this ends the request too.
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
            .describe(outputs, open, &mut |output, tokens| {
                self.handle_output(output, tokens)
            })?;
        text.extend_from_slice(&described);
        // Requests that ended because of a stop text.
        if let Some(stopped) = attribute(result, intern!(py, "reqs_to_abort"))? {
            let reason = intern!(py, "stop").as_any();
            for request_id in stopped.try_iter()? {
                self.end_answered(&request_id?, reason)?;
            }
        }
        Ok(())
    }

    /// Handles the first or the last output of a request: records the first token, counts the output's tokens, and ends the request if it is finished. Ignores
    /// a request that is not open.
    fn handle_output(&self, output: &Bound<'_, PyAny>, tokens: usize) -> PyResult<()> {
        let py = output.py();
        let front = self.front.get();
        let request_id = output.getattr(intern!(py, "request_id"))?;
        let Some(request) = front.open.bind(py).get_item(&request_id)? else {
            return Ok(());
        };
        let request = request.cast_into::<FrontRequest>()?;
        let tally = request.as_super().get();
        if tokens > 0 {
            if tally.output_tokens() == 0 {
                request.get().first_token(output, self.ts_ns)?;
            }
            tally.add(tokens);
        }
        if let Some(reason) = attribute(output, intern!(py, "finish_reason"))? {
            self.end_answered(&request_id, &front.reason_name(&reason)?)?;
        }
        Ok(())
    }

    /// Records that a request's answer is complete, and ends the request. Does nothing if the request is not open.
    fn end_answered(
        &self,
        request_id: &Bound<'_, PyAny>,
        reason: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Some(request) = self.front.get().remove(request_id)? else {
            return Ok(());
        };
        let name = intern!(request_id.py(), "request.answered");
        request.get().instant(name, self.ts_ns, Some(reason))?;
        request.get().end(&request, reason, self.began_ns, None)
    }
}
