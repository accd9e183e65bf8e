//! The ids of a step's requests as an arg. Most steps have the same requests as the step before.

use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::value::EncodedValue;
use crate::value::write_plain_list;

/// Request ids and their encoded text.
#[pyclass(frozen, extends = EncodedValue, module = "sa_profile")]
pub(crate) struct RequestIds {
    ids: Vec<Py<PyAny>>,
    have_outputs: AtomicBool,
}

impl RequestIds {
    /// Returns true if these request ids are the keys of the dict `counts`: the same objects in the same order.
    fn are_keys_of(&self, counts: &Bound<'_, PyDict>) -> bool {
        let (mut at, mut key) = (0, null_mut());
        let mut is_next = |id: &Py<PyAny>| {
            // SAFETY: the dict is alive, and no Python code runs meanwhile. The pointers are to places for a borrowed reference and a position.
            let is_there =
                unsafe { ffi::PyDict_Next(counts.as_ptr(), &raw mut at, &raw mut key, null_mut()) };
            is_there != 0 && id.as_ptr() == key
        };
        counts.len() == self.ids.len() && self.ids.iter().all(&mut is_next)
    }

    /// Returns a flag that is set if all of these requests are known to have output tokens. A request that is in each step keeps its outputs: if they are
    /// discarded, it returns as a new request.
    pub(crate) fn have_outputs(&self) -> &AtomicBool {
        &self.have_outputs
    }
}

/// Returns the keys of `counts`, which are request ids, as a value for the args of events. If they are the same as in `before`, the ids of the previous step,
/// returns `before`. Returns a list if the keys are not texts or if there are very many.
pub(crate) fn request_ids_arg<'py>(
    counts: &Bound<'py, PyAny>,
    before: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(counts) = counts.cast_exact::<PyDict>() else {
        let keys = counts.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(counts.py(), keys)?.into_any());
    };
    let is_same = |ids: &Bound<'_, RequestIds>| ids.get().are_keys_of(counts);
    if before.cast_exact::<RequestIds>().is_ok_and(is_same) {
        return Ok(before.clone());
    }
    let keys = counts.keys();
    match encoded(&keys) {
        Some(ids) => Ok(Bound::new(counts.py(), ids)?.into_any()),
        None => Ok(keys.into_any()),
    }
}

fn encoded(keys: &Bound<'_, PyList>) -> Option<(RequestIds, EncodedValue)> {
    let are_texts = keys.iter().all(|id| id.is_exact_instance_of::<PyString>());
    let mut text = Vec::new();
    if !are_texts || !write_plain_list(&mut text, keys) {
        return None;
    }
    let ids = RequestIds {
        ids: keys.iter().map(Bound::unbind).collect(),
        have_outputs: AtomicBool::new(false),
    };
    Some((ids, EncodedValue(text)))
}
