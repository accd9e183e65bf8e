//! [`Step`]: what an engine's step computes. The engine and each worker have one.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{AsyncSpan, FlowId, FlowPhase, Level};

use crate::async_span;
use crate::attached::Attached;
use crate::event::Event;
use crate::point::{encode_args, flow_phase, push_series, write_counter, write_flow};
use crate::scratch::Scratch;
use crate::span::open::OpenSpan;
use crate::value::push_native as push;
use crate::{lane, value};

/// One step, or batch, and its args.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Step {
    /// Number of the step, in the engine, which counts them.
    number: Option<u64>,
    /// What the engine calls the kind of step, such as `"decode"`.
    mode: Option<Py<PyString>>,
    /// Ids of its requests, as an arg.
    #[pyo3(get)]
    request_ids: Py<PyAny>,
    counts: Counts,
    flow: Option<FlowId>,
    /// The span of the call that passes the step to the workers.
    call: Attached<Option<Py<OpenSpan>>>,
    /// The span of a step that the workers compute while the engine does something else.
    under_way: Attached<Option<AsyncSpan>>,
}

/// Numbers of requests and tokens of a step, by kind.
struct Counts {
    tokens: u64,
    prefill_requests: u64,
    prefill_tokens: u64,
    decode_requests: u64,
    decode_tokens: u64,
}

impl Counts {
    fn push(&self, text: &mut Vec<u8>) {
        push(text, "prefill_requests", &self.prefill_requests);
        push(text, "prefill_tokens", &self.prefill_tokens);
        push(text, "decode_requests", &self.decode_requests);
        push(text, "decode_tokens", &self.decode_tokens);
    }
}

/// Opens a span with these encoded args on the track of the running task or thread.
fn open<'py>(
    name: &Bound<'py, PyAny>,
    category: &Bound<'py, PyAny>,
    args: &[u8],
) -> PyResult<Bound<'py, OpenSpan>> {
    OpenSpan::open(&Event::new(Level::E2e, Some(category), name, args)?)
}

#[pymethods]
impl Step {
    /// Creates a step.
    ///
    /// Arguments:
    ///     request_ids: the ids of its requests: what `request_ids` returned for them, or a list.
    ///     requests, tokens: how many requests compute how many tokens.
    ///     prefill: how many of these requests prefill, and how many of the tokens they compute. All others decode.
    ///     flow: a text from which the engine and each worker derive the id of the step's flow arrow, or `None` for no arrow.
    ///     number: the number of the step, if the engine counts them.
    ///     mode: what the engine calls this kind of step.
    #[new]
    #[pyo3(signature = (request_ids, requests, tokens, prefill, flow, number=None, mode=None, /))]
    fn new(
        request_ids: Py<PyAny>,
        requests: u64,
        tokens: u64,
        prefill: (u64, u64),
        flow: Option<&str>,
        number: Option<u64>,
        mode: Option<Py<PyString>>,
    ) -> Step {
        let (prefill_requests, prefill_tokens) = prefill;
        Step {
            number,
            mode,
            request_ids,
            counts: Counts {
                tokens,
                prefill_requests,
                prefill_tokens,
                decode_requests: requests.saturating_sub(prefill_requests),
                decode_tokens: tokens.saturating_sub(prefill_tokens),
            },
            flow: flow.map(FlowId::from_text),
            call: Attached::new(None),
            under_way: Attached::new(None),
        }
    }

    /// Number of the step, which the engine counts. None in a worker that does not know it.
    #[getter]
    fn number(&self) -> Option<u64> {
        self.number
    }

    /// True if no request of the step prefills.
    #[getter]
    fn decodes_only(&self) -> bool {
        self.counts.prefill_requests == 0
    }

    /// Opens a span whose args describe the step: its numbers of requests and tokens, and its request ids.
    #[pyo3(signature = (name, category, /))]
    fn open_span<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        category: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, OpenSpan>> {
        let mut text = Scratch::empty();
        Step::push_args(slf, &mut text.0);
        open(name, category, &text.0)
    }

    /// Records an event of the flow arrow from the engine's call to the workers and back. `phase` is `"start"`, `"step"` or `"end"`. The arrow's id need not
    /// be sent, because both sides derive it from the same text.
    #[pyo3(signature = (phase, /))]
    fn flow(&self, phase: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write_flow(phase.py(), flow_phase(phase)?);
        Ok(())
    }

    /// Opens the span of a call that does a part of the step's work. The step's args are shown only while this span is open, because the step's own span
    /// records them.
    #[pyo3(signature = (name, category, /))]
    fn open_part<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        category: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, OpenSpan>> {
        Step::open_with(slf, name, category, |_| 0)
    }

    /// Opens the span of the call that processes the step's results. Its only arg is the number of the step.
    #[pyo3(signature = (name, category, /))]
    fn open_result<'py>(
        &self,
        name: &Bound<'py, PyAny>,
        category: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, OpenSpan>> {
        let mut text = Scratch::empty();
        self.push_batch(&mut text.0);
        open(name, category, &text.0)
    }

    /// Opens the span of the engine's call that passes the step to the workers, and starts the flow arrow there. Returns the function to call when the
    /// observed call ends. The request ids are shown only while the span is open.
    #[pyo3(signature = (name, category, /))]
    fn open_call<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        category: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let step = slf.get();
        let opened = Step::open_with(slf, name, category, |shape_bytes| shape_bytes)?;
        step.write_flow(slf.py(), FlowPhase::Start);
        let before = step
            .call
            .with(slf.py(), |call| call.replace(opened.unbind()));
        drop(before); // outside `with`, because dropping an object may run code
        slf.getattr(intern!(slf.py(), "leave"))
    }

    /// Ends the span from `open_call` when the observed call ends. If the call returned a Future, the workers compute the step while the engine continues, so
    /// this opens a span for the step.
    #[pyo3(signature = (result, error, /))]
    fn leave(&self, result: &Bound<'_, PyAny>, error: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = result.py();
        if let Some(opened) = self.call.with(py, Option::take).flatten() {
            OpenSpan::close(opened.bind(py), error, None, None);
        }
        if result.hasattr(intern!(py, "add_done_callback"))? {
            self.begin(py)?;
        }
        Ok(())
    }

    /// Opens the span of a step that the workers compute while the engine continues. It is on the lane `batches`.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let mut text = Scratch::empty();
        self.push_batch(&mut text.0);
        self.counts.push(&mut text.0);
        let (name, level) = (intern!(py, "batch"), ("executor", Level::E2e));
        let span = async_span::open(name, level, Some("batches"), &text.0)?;
        let before = self.under_way.with(py, |under_way| under_way.replace(span));
        drop(before); // outside `with`, because dropping an object may run code
        Ok(())
    }

    /// Ends the span of a step that the workers computed while the engine continued. The step has come back or was lost. Adds args, given as keywords.
    #[pyo3(signature = (**args))]
    fn end(&self, py: Python<'_>, args: Option<&Bound<'_, PyDict>>) {
        let args = encode_args(args);
        if let Some(mut span) = self.under_way.with(py, Option::take).flatten() {
            span.args(&args);
        }
    }
}

impl Step {
    /// Opens a span whose args describe the step. The line that is written for it contains the first `kept_bytes(n)` bytes of the args, where `n` is the
    /// length of the args before the request ids.
    fn open_with<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        category: &Bound<'py, PyAny>,
        kept_bytes: impl FnOnce(usize) -> usize,
    ) -> PyResult<Bound<'py, OpenSpan>> {
        let mut text = Scratch::empty();
        slf.get().push_shape(slf.py(), &mut text.0);
        let shape_bytes = text.0.len();
        slf.get().push_ids(slf.py(), &mut text.0);
        let opened = open(name, category, &text.0)?;
        lane::truncate_line_args(opened.as_ptr().addr(), kept_bytes(shape_bytes));
        Ok(opened)
    }

    /// Appends the args that describe the step except for the request ids: its number, its mode, and its numbers of requests and tokens.
    fn push_shape(&self, py: Python<'_>, text: &mut Vec<u8>) {
        push(text, "tokens", &self.counts.tokens);
        self.push_batch(text);
        if let Some(mode) = &self.mode {
            value::push_named(text, "mode", mode.bind(py));
        }
        self.counts.push(text);
    }

    fn push_batch(&self, text: &mut Vec<u8>) {
        if let Some(number) = self.number {
            push(text, "batch", &number);
        }
    }

    fn write_flow(&self, py: Python<'_>, phase: FlowPhase) {
        if let Some(id) = self.flow
            && sa_recorder::__wants(Level::E2e)
        {
            write_flow(py, Level::E2e, phase, ("batch", "batch"), id, None);
        }
    }

    /// Appends the args that describe the step to the encoded args in `text`: its number, its numbers of requests and tokens, and its request ids.
    pub(crate) fn push_args(slf: &Bound<'_, Self>, text: &mut Vec<u8>) {
        let step = slf.get();
        step.push_shape(slf.py(), text);
        step.push_ids(slf.py(), text);
    }

    fn push_ids(&self, py: Python<'_>, text: &mut Vec<u8>) {
        value::push_named(text, "request_ids", self.request_ids.bind(py));
    }
}

/// Records counters after a scheduler has handled a step's results: running and waiting requests, the used percentage of the KV cache, and the step's tokens.
/// `None` leaves a counter out.
#[pyfunction]
#[pyo3(signature = (running, waiting, used_percent, step, /))]
pub(crate) fn record_step_counters(
    py: Python<'_>,
    running: Option<&Bound<'_, PyAny>>,
    waiting: Option<&Bound<'_, PyAny>>,
    used_percent: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, Step>>,
) -> PyResult<()> {
    if !sa_recorder::__wants(Level::E2e) {
        return Ok(());
    }
    if let (Some(running), Some(waiting)) = (running, waiting) {
        let queues = [
            (intern!(py, "running"), running),
            (intern!(py, "waiting"), waiting),
        ];
        write_counter(Level::E2e, intern!(py, "requests"), &series(&queues).0)?;
    }
    if let Some(used) = used_percent {
        let cache = series(&[(intern!(py, "used_percent"), used)]);
        write_counter(Level::E2e, intern!(py, "kv_cache"), &cache.0)?;
    }
    if let Some(step) = step {
        let counts = &step.get().counts;
        let mut text = Scratch::empty();
        push(&mut text.0, "prefill", &counts.prefill_tokens);
        push(&mut text.0, "decode", &counts.decode_tokens);
        write_counter(Level::E2e, intern!(py, "tokens"), &text.0)?;
    }
    Ok(())
}

fn series(found: &[(&Bound<'_, PyString>, &Bound<'_, PyAny>)]) -> Scratch {
    let mut text = Scratch::empty();
    for (key, value) in found {
        push_series(&mut text.0, key, value);
    }
    text
}
