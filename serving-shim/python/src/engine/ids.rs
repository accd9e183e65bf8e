//! The ids of a step's requests as an arg. Most steps have the same requests as the step before.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::value::EncodedValue;
use crate::value::write_plain_list;

/// Request ids and their encoded text.
#[pyclass(frozen, extends = EncodedValue, module = "sa_profile")]
pub(crate) struct RequestIds {
    ids: Vec<Py<PyAny>>,
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

    /// Returns true if these request ids are the items of a list: the same objects in the same order.
    fn are_items_of(&self, list: &Bound<'_, PyList>) -> bool {
        list.len() == self.ids.len() && list.iter().zip(&self.ids).all(|(item, id)| id.is(&item))
    }
}

/// Returns the ids of a step's requests as a value for the args of events.
///
/// Arguments:
///     ids: a list of the ids, or a dict with the ids as its keys.
///     before: what this returned for the previous step. It is returned again if the ids are the same.
///
/// Returns a list if the ids are not texts or if there are very many.
#[pyfunction]
#[pyo3(signature = (ids, before=None, /))]
pub(crate) fn request_ids<'py>(
    ids: &Bound<'py, PyAny>,
    before: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let last = before.and_then(|before| before.cast_exact::<RequestIds>().ok());
    let keys = if let Ok(list) = ids.cast_exact::<PyList>() {
        if let Some(last) = last.filter(|last| last.get().are_items_of(list)) {
            return Ok(last.clone().into_any());
        }
        list.clone()
    } else if let Ok(counts) = ids.cast_exact::<PyDict>() {
        if let Some(last) = last.filter(|last| last.get().are_keys_of(counts)) {
            return Ok(last.clone().into_any());
        }
        counts.keys()
    } else {
        let keys = ids.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        PyList::new(ids.py(), keys)?
    };
    match encoded(&keys) {
        Some(ids) => Ok(Bound::new(keys.py(), ids)?.into_any()),
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
    };
    Some((ids, EncodedValue(text)))
}
