//! What the steps of an engine bring, counted by request: no code of Python runs for a token of which nothing is told.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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

/// Counts the outputs of a step for their requests, which are known by their ids; returns how many tokens there are in all. An output that is the first of its request, or the last,
/// or of one that is not known, is not counted for it: `look` is called with it and its number of tokens.
#[pyfunction]
#[pyo3(signature = (outputs, known, look, /))]
fn count_outputs(
    outputs: &Bound<'_, PyAny>,
    known: &Bound<'_, PyDict>,
    look: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let py = outputs.py();
    let mut all_tokens = 0;
    for output in outputs.try_iter()? {
        let output = output?;
        let tokens = output.getattr(intern!(py, "new_token_ids"))?.len()?;
        all_tokens += tokens;
        if !is_counted(&output, known, tokens)? {
            look.call1((output, tokens))?;
        }
    }
    Ok(all_tokens)
}

/// Counts an output of which nothing else is to be told; whether it is one.
fn is_counted(
    output: &Bound<'_, PyAny>,
    known: &Bound<'_, PyDict>,
    tokens: usize,
) -> PyResult<bool> {
    let py = output.py();
    if !output.getattr(intern!(py, "finish_reason"))?.is_none() {
        return Ok(false);
    }
    let request_id = output.getattr(intern!(py, "request_id"))?;
    let Some(request) = known.get_item(request_id)? else {
        return Ok(false);
    };
    let tally = request.cast::<Tally>()?.get();
    let is_usual = tokens == 0 || tally.output_tokens() > 0;
    if is_usual {
        tally.add(tokens);
    }
    Ok(is_usual)
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tally>()?;
    module.add_function(wrap_pyfunction!(count_outputs, module)?)
}
