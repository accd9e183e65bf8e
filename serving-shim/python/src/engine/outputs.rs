//! What the steps of an engine bring, counted by request: no code of Python runs for a token of which nothing is told.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::attached::Attached;

/// What a request has got so far. What else is known of it stands in the classes of Python that extend this one.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct Tally {
    tokens: AtomicU64,
    steps: AtomicU64,
}

#[pymethods]
impl Tally {
    #[new]
    #[pyo3(signature = (output_tokens=0, /))]
    fn new(output_tokens: u64) -> Tally {
        Tally {
            tokens: AtomicU64::new(output_tokens),
            steps: AtomicU64::new(0),
        }
    }

    /// How many tokens.
    #[getter]
    fn output_tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// In how many steps.
    #[getter]
    fn output_steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Counts what a step has brought.
    #[pyo3(signature = (tokens, /))]
    fn add(&self, tokens: usize) {
        if tokens > 0 {
            self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Tally {
    /// Counts what a step has brought, unless that has the request's first token; whether it was counted.
    fn count_usual(&self, tokens: usize) -> bool {
        let is_usual = tokens == 0 || self.output_tokens() > 0;
        if is_usual {
            self.add(tokens);
        }
        is_usual
    }
}

/// Counts the outputs of steps for their requests, which are known by their ids.
#[pyclass(frozen, module = "sa_profile")]
struct Outputs {
    /// Of each place among the outputs of a step the request that was there last: mostly it is there again, and need not be looked for.
    last: Attached<LastStep>,
}

#[derive(Default)]
struct LastStep {
    places: Vec<Place>,
    /// How often a request was forgotten. The places of a count during which that happened are not kept.
    forgotten: u64,
}

struct Place {
    request_id: Py<PyAny>,
    request: Py<Tally>,
}

impl Place {
    /// Whether this is its id: the same object, or, as what came by a message, the same text.
    fn is_of(&self, request_id: &Bound<'_, PyAny>) -> bool {
        let ours = self.request_id.bind(request_id.py());
        ours.is(request_id) || are_same_text(ours, request_id)
    }
}

/// Whether both are texts, and the same one. Nobody else's code runs.
fn are_same_text(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> bool {
    let are_texts =
        one.is_exact_instance_of::<PyString>() && other.is_exact_instance_of::<PyString>();
    // SAFETY: both are alive, and texts, of which the comparison cannot fail.
    are_texts && unsafe { ffi::PyUnicode_Compare(one.as_ptr(), other.as_ptr()) } == 0
}

#[pymethods]
impl Outputs {
    #[new]
    fn new() -> Outputs {
        Outputs {
            last: Attached::new(LastStep::default()),
        }
    }

    /// Counts the outputs of a step; returns how many tokens there are in all. An output that is the first of its request, or the last, or of one that is not known, is not counted for
    /// it: `look` is called with it and its number of tokens. With `looks_at_all` it is called with each.
    #[pyo3(signature = (outputs, known, look, looks_at_all=false, /))]
    fn count(
        &self,
        outputs: &Bound<'_, PyAny>,
        known: &Bound<'_, PyDict>,
        look: &Bound<'_, PyAny>,
        looks_at_all: bool,
    ) -> PyResult<usize> {
        let py = outputs.py();
        let take = |last: &mut LastStep| (std::mem::take(&mut last.places), last.forgotten);
        let (mut places, forgotten) = self.last.with(py, take).unwrap_or_default();
        let mut all_tokens = 0;
        for (at, output) in outputs.try_iter()?.enumerate() {
            let output = output?;
            let tokens = output.getattr(intern!(py, "new_token_ids"))?.len()?;
            all_tokens += tokens;
            if looks_at_all || !is_counted(&output, tokens, known, (at, &mut places))? {
                look.call1((output, tokens))?;
                places.clear(); // it may have taken a request away
            }
        }
        let keep = |last: &mut LastStep| {
            if last.forgotten == forgotten {
                std::mem::swap(&mut last.places, &mut places);
            }
        };
        self.last.with(py, keep);
        drop(places); // after the look: dropping an object may run code
        Ok(all_tokens)
    }

    /// A request is known no more.
    fn forget(&self, py: Python<'_>) {
        let forget = |last: &mut LastStep| {
            last.forgotten += 1;
            std::mem::take(&mut last.places)
        };
        drop(self.last.with(py, forget));
    }
}

/// Counts an output of which nothing else is to be told; whether it is one.
fn is_counted(
    output: &Bound<'_, PyAny>,
    tokens: usize,
    known: &Bound<'_, PyDict>,
    (at, places): (usize, &mut Vec<Place>),
) -> PyResult<bool> {
    let py = output.py();
    if !output.getattr(intern!(py, "finish_reason"))?.is_none() {
        return Ok(false);
    }
    let request_id = output.getattr(intern!(py, "request_id"))?;
    let place = places.get(at);
    if let Some(place) = place.filter(|place| place.is_of(&request_id)) {
        return Ok(place.request.get().count_usual(tokens));
    }
    let Some(request) = known.get_item(&request_id)? else {
        return Ok(false);
    };
    let request = request.cast_into::<Tally>()?;
    let is_usual = request.get().count_usual(tokens);
    let place = Place {
        request_id: request_id.unbind(),
        request: request.unbind(),
    };
    if let Some(other) = places.get_mut(at) {
        *other = place;
    } else if places.len() == at {
        places.push(place);
    }
    Ok(is_usual)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tally>()?;
    module.add_class::<Outputs>()
}
