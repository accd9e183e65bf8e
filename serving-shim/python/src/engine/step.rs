//! What kind of step vLLM's scheduler has made up.

use std::sync::atomic::Ordering;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::engine::ids::Ids;

/// Whether each request of a step decodes one token: nobody begins, or begins again, and all of them have an output. An output of the scheduler that does not say so in today's
/// way is none of these. `ids` are those of its requests.
#[pyfunction]
#[pyo3(signature = (output, ids, /))]
fn decodes_only(output: &Bound<'_, PyAny>, ids: &Bound<'_, PyAny>) -> PyResult<bool> {
    let known = ids.cast_exact::<Ids>().ok();
    let known = known.map(|ids| ids.get().have_outputs());
    let is_known = known.is_some_and(|known| known.load(Ordering::Relaxed));
    let goes_on = goes_on(output)?;
    let decodes = goes_on && (is_known || have_outputs(output)?);
    if let Some(known) = known {
        known.store(decodes, Ordering::Relaxed);
    }
    Ok(decodes)
}

/// Whether nobody begins, or begins again, and each request computes one token.
fn goes_on(output: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = output.py();
    let requests = output.getattr(intern!(py, "num_scheduled_tokens"))?.len()?;
    let tokens = output.getattr(intern!(py, "total_num_scheduled_tokens"))?;
    let new = output.getattr(intern!(py, "scheduled_new_reqs"))?;
    if tokens.extract::<usize>()? != requests || new.len()? > 0 {
        return Ok(false);
    }
    let cached = output.getattr(intern!(py, "scheduled_cached_reqs"))?;
    let resumed = cached.getattr_opt(intern!(py, "resumed_req_ids"))?;
    Ok(resumed.is_some_and(|resumed| resumed.len().is_ok_and(|count| count == 0)))
}

/// Whether all requests of a step that goes on have an output.
fn have_outputs(output: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = output.py();
    let cached = output.getattr(intern!(py, "scheduled_cached_reqs"))?;
    let outputs = cached.getattr_opt(intern!(py, "num_output_tokens"))?;
    Ok(outputs.is_some_and(|outputs| outputs.cast().is_ok_and(are_positive)))
}

/// Whether all of these are ints over 0.
fn are_positive(numbers: &Bound<'_, PyList>) -> bool {
    let mut numbers = numbers.iter();
    numbers.all(|number| number.extract::<i64>().is_ok_and(|number| number > 0))
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(decodes_only, module)?)
}
