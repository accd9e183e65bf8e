//! [`Scheduled`]: the members of vLLM's `SchedulerOutput` that are read in each step.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};
use sa_recorder::FlowId;

use crate::engine::ids::RequestIds;

/// The scheduler's decisions for a step.
pub(crate) struct Scheduled<'py> {
    /// Number of tokens by request id.
    pub(crate) counts: Bound<'py, PyAny>,
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    new: Bound<'py, PyAny>,
    has_new: bool,
    cached: Bound<'py, PyAny>,
}

impl<'py> Scheduled<'py> {
    pub(crate) fn read(output: &Bound<'py, PyAny>) -> PyResult<Scheduled<'py>> {
        let py = output.py();
        let counts = output.getattr(intern!(py, "num_scheduled_tokens"))?;
        let tokens = output.getattr(intern!(py, "total_num_scheduled_tokens"))?;
        let new = output.getattr(intern!(py, "scheduled_new_reqs"))?;
        Ok(Scheduled {
            requests: counts.len()? as u64,
            tokens: tokens.extract()?,
            has_new: new.len()? > 0,
            cached: output.getattr(intern!(py, "scheduled_cached_reqs"))?,
            counts,
            new,
        })
    }

    /// Returns true if each request of the step decodes one token. `ids` are the ids of the step's requests.
    pub(crate) fn decodes_only(&self, ids: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ids = ids.cast_exact::<RequestIds>().ok();
        let have_outputs = ids.map(|ids| ids.get().have_outputs());
        let is_known = have_outputs.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let decode = self.is_continuation()? && (is_known || self.have_outputs()?);
        if let Some(flag) = have_outputs {
            flag.store(decode, Ordering::Relaxed);
        }
        Ok(decode)
    }

    /// Returns true if no request starts or resumes in this step and each request computes one token.
    fn is_continuation(&self) -> PyResult<bool> {
        if self.tokens != self.requests || self.has_new {
            return Ok(false);
        }
        let name = intern!(self.cached.py(), "resumed_req_ids");
        let resumed = self.cached.getattr_opt(name)?;
        Ok(resumed.is_some_and(|resumed| resumed.len().is_ok_and(|count| count == 0)))
    }

    /// Returns the list with the number of output tokens of each continuing request, or `None` for vLLM before 0.10.
    fn output_counts(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.cached
            .getattr_opt(intern!(self.cached.py(), "num_output_tokens"))
    }

    /// Returns true if each continuing request has at least one output token.
    fn have_outputs(&self) -> PyResult<bool> {
        let outputs = self.output_counts()?;
        Ok(outputs.is_some_and(|outputs| outputs.cast().is_ok_and(are_positive)))
    }

    /// Returns how many requests there are in `requests`, and how many tokens they have in this step. `requests` are ids.
    pub(crate) fn sum(&self, requests: &Bound<'py, PyAny>) -> PyResult<(u64, u64)> {
        let (mut count, mut tokens) = (0, 0);
        for request_id in requests.try_iter()? {
            count += 1;
            tokens += self.counts.get_item(request_id?)?.extract::<u64>()?;
        }
        Ok((count, tokens))
    }

    /// Returns the id of the step's flow arrow, or `None` for a step without tokens. The engine and the workers each compute the same id.
    pub(crate) fn flow(&self) -> PyResult<Option<FlowId>> {
        if self.tokens == 0 {
            return Ok(None);
        }
        let mut name = String::with_capacity(96);
        self.push_first(&mut name)?;
        push_number(&mut name, self.tokens);
        Ok(Some(FlowId::from_text(&name)))
    }

    /// Appends the id of the step's first request, and how many of its tokens are computed, to the text from which the flow's id is made.
    fn push_first(&self, name: &mut String) -> PyResult<()> {
        let py = self.cached.py();
        let (id, computed) = (intern!(py, "req_id"), intern!(py, "num_computed_tokens"));
        let in_list = self.cached.cast::<PyList>(); // before 0.10: one object per request
        if self.has_new || in_list.is_ok() {
            let first = match in_list {
                Ok(cached) if !self.has_new => cached.get_item(0)?,
                _ => self.new.get_item(0)?,
            };
            push(name, &first.getattr(id)?)?;
            push(name, &first.getattr(computed)?)?;
            name.push_str(if self.has_new { "new/" } else { "0/" });
            return Ok(());
        }
        let ids = self.cached.getattr(intern!(py, "req_ids"))?;
        push(name, &ids.get_item(0)?)?;
        push(name, &self.cached.getattr(computed)?.get_item(0)?)?;
        match self.output_counts()? {
            Some(outputs) if outputs.len()? > 0 => push(name, &outputs.get_item(0)?),
            _ => {
                name.push_str("0/");
                Ok(())
            }
        }
    }
}

/// Appends the `str` of a Python object and a slash to the text from which a flow's id is made. Most objects are texts and small numbers.
fn push(name: &mut String, part: &Bound<'_, PyAny>) -> PyResult<()> {
    let number = part.cast_exact::<PyInt>().ok();
    if let Some(number) = number.and_then(|number| number.extract().ok()) {
        push_number(name, number);
    } else {
        name.push_str(&part.str()?.to_string_lossy());
    }
    name.push('/');
    Ok(())
}

fn push_number(name: &mut String, number: u64) {
    let _ = write!(name, "{number}"); // writing to a string cannot fail
}

/// Returns true if all items of the list are ints above 0.
fn are_positive(numbers: &Bound<'_, PyList>) -> bool {
    let mut numbers = numbers.iter();
    numbers.all(|number| number.extract::<i64>().is_ok_and(|number| number > 0))
}
