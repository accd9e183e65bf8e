//! Counts the output tokens of an engine's steps by request. For a token that causes no event, no Python code runs.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::Value;

use crate::attached::Attached;
use crate::engine::layout::{OutputLayout, Outputs};

/// Number of the last [`OutputCounts`].
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A request's output counts. Python classes extend it with other data of the request.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct OutputCounts {
    number: u64,
    tokens: AtomicU64,
    steps: AtomicU64,
}

#[pymethods]
impl OutputCounts {
    #[new]
    #[pyo3(signature = (output_tokens=0, /))]
    pub(crate) fn new(output_tokens: u64) -> OutputCounts {
        OutputCounts {
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
            tokens: AtomicU64::new(output_tokens),
            steps: AtomicU64::new(0),
        }
    }

    /// Number of this request. No other request of this process has it, even one with the same id.
    #[getter]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Number of output tokens of the request so far.
    #[getter]
    pub(crate) fn output_tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Number of steps that produced output tokens for the request so far.
    #[getter]
    fn output_steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Adds the output tokens of one step to the request's counts.
    #[pyo3(signature = (tokens, /))]
    pub(crate) fn add(&self, tokens: usize) {
        if tokens > 0 {
            self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl OutputCounts {
    /// Adds the output tokens of one step to the request's counts, unless they include the request's first token. Returns true if it has added them.
    fn add_unless_first(&self, tokens: usize) -> bool {
        let is_further = tokens == 0 || self.output_tokens() > 0;
        if is_further {
            self.add(tokens);
        }
        is_further
    }
}

/// Counts the outputs of steps for their requests, which are found by their ids.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct OutputCounter {
    layout: OutputLayout,
    /// The request at each position of the last step's outputs. It is usually at the same position again, which saves a lookup.
    last: Attached<LastStep>,
}

/// An output of a step that is not simply counted.
pub(crate) struct Special<'a, 'py> {
    /// Position among the step's outputs.
    pub(crate) at: usize,
    pub(crate) request_id: Bound<'py, PyAny>,
    pub(crate) request: Option<&'a Bound<'py, OutputCounts>>,
    pub(crate) tokens: usize,
    /// The engine's finish reason, or Python's `None` if the request continues.
    pub(crate) finish_reason: Bound<'py, PyAny>,
}

/// Handles an output that is not simply counted.
type Handler<'a, 'py> = dyn FnMut(&Special<'_, 'py>) -> PyResult<()> + 'a;

#[derive(Default)]
struct LastStep {
    slots: Vec<Slot>,
    /// Number of times a request was forgotten. If that happens during a count, its positions are not stored.
    forgotten: u64,
}

struct Slot {
    request_id: Py<PyAny>,
    request: Py<OutputCounts>,
}

impl Slot {
    /// Returns true if `request_id` is the id of the slot's request: the same object, or the same text, because ids from messages are new objects.
    fn matches(&self, request_id: &Bound<'_, PyAny>) -> bool {
        let ours = self.request_id.bind(request_id.py());
        ours.is(request_id) || are_same_text(ours, request_id)
    }
}

/// Returns true if both Python objects are strings with equal text. Runs no Python code.
fn are_same_text(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> bool {
    let are_texts =
        one.is_exact_instance_of::<PyString>() && other.is_exact_instance_of::<PyString>();
    // SAFETY: both objects are alive and texts, so the comparison cannot fail.
    are_texts && unsafe { ffi::PyUnicode_Compare(one.as_ptr(), other.as_ptr()) } == 0
}

#[pymethods]
impl OutputCounter {
    #[new]
    #[pyo3(signature = (layout, /))]
    pub(crate) fn new(layout: &Bound<'_, OutputLayout>) -> OutputCounter {
        OutputCounter {
            layout: layout.get().clone_ref(layout.py()),
            last: Attached::new(LastStep::default()),
        }
    }

    /// Counts the output tokens of one step for their requests and returns their total number. `requests` maps ids to requests. An output is not counted for
    /// its request if it is the request's first or last one, or if the request is unknown. Instead, `handle` is called with the output's position, request id,
    /// number of tokens and finish reason. With `handles_all`, `handle` is called for each output.
    #[pyo3(signature = (outputs, requests, handle, handles_all=false, /))]
    fn count(
        &self,
        outputs: &Bound<'_, PyAny>,
        requests: &Bound<'_, PyDict>,
        handle: &Bound<'_, PyAny>,
        handles_all: bool,
    ) -> PyResult<usize> {
        let mut handle = |one: &Special<'_, '_>| {
            let args = (one.at, &one.request_id, one.tokens, &one.finish_reason);
            handle.call1(args).map(drop)
        };
        self.count_each(outputs, requests, &mut handle, handles_all, |_, _| {})
    }

    /// Drops the stored positions of requests in the last step's outputs, because a request was removed.
    pub(crate) fn forget(&self, py: Python<'_>) {
        let forget = |last: &mut LastStep| {
            last.forgotten += 1;
            std::mem::take(&mut last.slots)
        };
        drop(self.last.with(py, forget));
    }
}

impl OutputCounter {
    /// Counts the output tokens of one step like `count`, and returns encoded args that describe them: the total number of tokens, and the number of each
    /// request that got an output. If every request got one token, the tokens of each output are left out.
    pub(crate) fn describe<'py>(
        &self,
        outputs: &Bound<'py, PyAny>,
        requests: &Bound<'py, PyDict>,
        handle: &mut Handler<'_, 'py>,
    ) -> PyResult<Vec<u8>> {
        let (mut numbers, mut tokens_each) = (Vec::new(), Vec::new());
        let mut are_single = true;
        let all_tokens = self.count_each(outputs, requests, handle, false, |request, tokens| {
            numbers.push(request.number);
            tokens_each.push(tokens as u64);
            are_single &= tokens == 1;
        })?;
        let mut text = b"\"tokens\":".to_vec();
        all_tokens.write(&mut text);
        if !numbers.is_empty() {
            text.extend_from_slice(b",\"request_numbers\":");
            push_numbers(&mut text, &numbers);
        }
        if !are_single {
            text.extend_from_slice(b",\"output_tokens_each\":");
            push_numbers(&mut text, &tokens_each);
        }
        Ok(text)
    }

    /// Counts the output tokens of one step and returns their total number. Calls `each` with the request and the number of tokens of every output whose
    /// request is known.
    fn count_each<'py>(
        &self,
        outputs: &Bound<'py, PyAny>,
        requests: &Bound<'py, PyDict>,
        handle: &mut Handler<'_, 'py>,
        handles_all: bool,
        mut each: impl FnMut(&OutputCounts, usize),
    ) -> PyResult<usize> {
        let py = outputs.py();
        let remove = |last: &mut LastStep| (std::mem::take(&mut last.slots), last.forgotten);
        let (mut slots, forgotten) = self.last.with(py, remove).unwrap_or_default();
        let mut all_tokens = 0;
        let outputs = Outputs::read(&self.layout, outputs)?;
        for at in 0..outputs.len() {
            let output = outputs.get(at)?;
            let request = find_request(&output.request_id, requests, (at, &mut slots))?;
            let before = request.as_ref().map_or(0, |one| one.get().output_tokens());
            let tokens = outputs.new_tokens(&output, before)?;
            let is_last = !output.finish_reason.is_none();
            if let Some(request) = &request {
                all_tokens += tokens;
                each(request.get(), tokens);
            } else if !outputs.are_cumulative() {
                all_tokens += tokens;
            }
            let is_counted = !handles_all
                && !is_last
                && request
                    .as_ref()
                    .is_some_and(|request| request.get().add_unless_first(tokens));
            if !is_counted {
                handle(&Special {
                    at,
                    request_id: output.request_id,
                    request: request.as_ref(),
                    tokens,
                    finish_reason: output.finish_reason,
                })?;
                slots.clear(); // `handle` may have removed a request
            }
        }
        let keep = |last: &mut LastStep| {
            if last.forgotten == forgotten {
                std::mem::swap(&mut last.slots, &mut slots);
            }
        };
        self.last.with(py, keep);
        drop(slots); // outside `with`, because dropping an object may run code
        Ok(all_tokens)
    }
}

/// Returns the request with the id `request_id`, or `None` if it is not in `requests`. `slots` are the requests by their position in the previous step, where
/// it is usually found at the same position `at`.
fn find_request<'py>(
    request_id: &Bound<'py, PyAny>,
    requests: &Bound<'py, PyDict>,
    (at, slots): (usize, &mut Vec<Slot>),
) -> PyResult<Option<Bound<'py, OutputCounts>>> {
    let py = request_id.py();
    let slot = slots.get(at);
    if let Some(slot) = slot.filter(|slot| slot.matches(request_id)) {
        return Ok(Some(slot.request.bind(py).clone()));
    }
    let Some(request) = requests.get_item(request_id)? else {
        return Ok(None);
    };
    let request = request.cast_into::<OutputCounts>()?;
    let slot = Slot {
        request_id: request_id.clone().unbind(),
        request: request.clone().unbind(),
    };
    if let Some(other) = slots.get_mut(at) {
        *other = slot;
    } else if slots.len() == at {
        slots.push(slot);
    }
    Ok(Some(request))
}

/// Appends whole numbers to `text` as a JSON list.
fn push_numbers(text: &mut Vec<u8>, numbers: &[u64]) {
    text.push(b'[');
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        number.write(text);
    }
    text.push(b']');
}

/// Returns the number of the request that was created last in this process. Numbers begin at 1.
#[pyfunction]
pub(crate) fn last_request_number() -> u64 {
    LAST_NUMBER.load(Ordering::Relaxed)
}
