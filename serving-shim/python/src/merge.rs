//! The merge, for the drop-in profiler: lines as they stand, in one file.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use trace_merge::{Error, Options, Output, Runs};

/// Merges the fragments of a folder; the number of events in the trace. The interpreter's lock is not held meanwhile.
#[pyfunction]
#[pyo3(signature = (fragments, trace, /))]
fn merge(py: Python<'_>, fragments: PathBuf, trace: PathBuf) -> PyResult<u64> {
    py.detach(|| merge_into(fragments, &trace))
        .map_err(|error| match error {
            Error::Write { path, source } => raised(&path, &source),
            other => PyOSError::new_err(other.to_string()),
        })
}

fn merge_into(fragments: PathBuf, trace: &Path) -> Result<u64, Error> {
    let options = Options {
        output: Output::File(trace.to_owned()),
        runs: Runs::InPlace,
        verbatim: true,
        allow_empty: true,
        ..Options::new([fragments])
    };
    trace_merge::merge(&options).map(|report| report.events_total)
}

/// The error as Python's own functions raise it, with its number and path.
fn raised(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(merge, module)?)
}
