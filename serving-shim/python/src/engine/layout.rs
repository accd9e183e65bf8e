//! [`OutputLayout`]: how an engine's outputs of one step are read.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString};

/// Names of the attributes in which an engine keeps the outputs of one step.
///
/// The outputs are either a list of objects with these attributes, or with `columns` one object whose attributes are lists with an item for each output.
///
/// Arguments:
///     request_id: the id of the request.
///     tokens: the output tokens, as a list or as a number.
///     finish_reason: not `None` if this is the request's last output.
///     columns: true if the attributes are lists of one object.
///     cumulative: true if `tokens` counts all output tokens of the request so far, and not only those of this step.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct OutputLayout {
    request_id: Py<PyString>,
    tokens: Py<PyString>,
    finish_reason: Py<PyString>,
    columns: bool,
    cumulative: bool,
}

#[pymethods]
impl OutputLayout {
    #[new]
    #[pyo3(signature = (request_id, tokens, finish_reason, /, *, columns=false, cumulative=false))]
    fn new(
        request_id: &str,
        tokens: &str,
        finish_reason: &str,
        columns: bool,
        cumulative: bool,
        py: Python<'_>,
    ) -> OutputLayout {
        let intern = |name| PyString::intern(py, name).unbind();
        OutputLayout {
            request_id: intern(request_id),
            tokens: intern(tokens),
            finish_reason: intern(finish_reason),
            columns,
            cumulative,
        }
    }
}

impl OutputLayout {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> OutputLayout {
        OutputLayout {
            request_id: self.request_id.clone_ref(py),
            tokens: self.tokens.clone_ref(py),
            finish_reason: self.finish_reason.clone_ref(py),
            ..*self
        }
    }

    /// Returns the number of outputs in an engine's outputs of one step.
    pub(crate) fn count(&self, outputs: &Bound<'_, PyAny>) -> PyResult<usize> {
        match self.columns {
            true => outputs.getattr(self.request_id.bind(outputs.py()))?.len(),
            false => outputs.len(),
        }
    }
}

/// One output of a step.
pub(crate) struct Output<'py> {
    pub(crate) request_id: Bound<'py, PyAny>,
    /// The output tokens as the engine keeps them, or `None` for an output without tokens, such as an embedding.
    tokens: Option<Bound<'py, PyAny>>,
    /// Python's `None` if the request continues.
    pub(crate) finish_reason: Bound<'py, PyAny>,
}

/// The outputs of one step.
pub(crate) struct Outputs<'a, 'py> {
    layout: &'a OutputLayout,
    kind: Kind<'py>,
}

enum Kind<'py> {
    Rows(Bound<'py, PyList>),
    Columns {
        request_ids: Bound<'py, PyList>,
        tokens: Option<Bound<'py, PyList>>,
        finish_reasons: Bound<'py, PyList>,
    },
}

impl<'a, 'py> Outputs<'a, 'py> {
    pub(crate) fn read(
        layout: &'a OutputLayout,
        outputs: &Bound<'py, PyAny>,
    ) -> PyResult<Outputs<'a, 'py>> {
        let py = outputs.py();
        let kind = match layout.columns {
            false => Kind::Rows(list(outputs.clone())?),
            true => Kind::Columns {
                request_ids: list(outputs.getattr(layout.request_id.bind(py))?)?,
                tokens: outputs
                    .getattr_opt(layout.tokens.bind(py))?
                    .filter(|tokens| !tokens.is_none())
                    .map(list)
                    .transpose()?,
                finish_reasons: list(outputs.getattr(layout.finish_reason.bind(py))?)?,
            },
        };
        Ok(Outputs { layout, kind })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Rows(outputs) => outputs.len(),
            Kind::Columns { request_ids, .. } => request_ids.len(),
        }
    }

    /// Returns true if each output contains the number of all output tokens of its request so far.
    pub(crate) fn are_cumulative(&self) -> bool {
        self.layout.cumulative
    }

    /// Returns the output at a position.
    pub(crate) fn get(&self, at: usize) -> PyResult<Output<'py>> {
        match &self.kind {
            Kind::Rows(outputs) => {
                let output = outputs.get_item(at)?;
                let py = output.py();
                Ok(Output {
                    request_id: output.getattr(self.layout.request_id.bind(py))?,
                    tokens: Some(output.getattr(self.layout.tokens.bind(py))?),
                    finish_reason: output.getattr(self.layout.finish_reason.bind(py))?,
                })
            }
            Kind::Columns {
                request_ids,
                tokens,
                finish_reasons,
            } => Ok(Output {
                request_id: request_ids.get_item(at)?,
                tokens: tokens.as_ref().map(|all| all.get_item(at)).transpose()?,
                finish_reason: finish_reasons.get_item(at)?,
            }),
        }
    }

    /// Returns how many tokens an output adds to those that its request had before.
    pub(crate) fn new_tokens(&self, output: &Output<'py>, before: u64) -> PyResult<usize> {
        let Some(tokens) = &output.tokens else {
            return Ok(0);
        };
        let tokens = match tokens.cast::<PyInt>() {
            Ok(count) => count.extract()?,
            Err(_) => tokens.len()?,
        };
        let before = match self.layout.cumulative {
            true => usize::try_from(before).unwrap_or(usize::MAX),
            false => 0,
        };
        Ok(tokens.saturating_sub(before))
    }
}

/// Returns the object if it is a list, and otherwise a list of its items.
fn list(items: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyList>> {
    match items.cast_into::<PyList>() {
        Ok(items) => Ok(items),
        Err(error) => {
            let items = error.into_inner();
            let all = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            PyList::new(items.py(), all)
        }
    }
}
