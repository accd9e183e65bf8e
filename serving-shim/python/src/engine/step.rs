//! What kind of step vLLM's scheduler has made up.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Whether each request of a step decodes one token: nobody begins, or begins again, and all of them have an output. An output of the scheduler that does not say so in today's
/// way is none of these.
#[pyfunction]
#[pyo3(signature = (output, /))]
fn decodes_only(output: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = output.py();
    let requests = output.getattr(intern!(py, "num_scheduled_tokens"))?.len()?;
    let tokens = output.getattr(intern!(py, "total_num_scheduled_tokens"))?;
    let new = output.getattr(intern!(py, "scheduled_new_reqs"))?;
    let cached = output.getattr(intern!(py, "scheduled_cached_reqs"))?;
    if tokens.extract::<usize>()? != requests || new.len()? > 0 {
        return Ok(false);
    }
    let Some(resumed) = cached.getattr_opt(intern!(py, "resumed_req_ids"))? else {
        return Ok(false);
    };
    let Some(outputs) = cached.getattr_opt(intern!(py, "num_output_tokens"))? else {
        return Ok(false);
    };
    Ok(resumed.len()? == 0 && outputs.cast::<PyList>().is_ok_and(are_positive))
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
