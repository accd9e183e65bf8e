//! Merging: verbatim lines for the drop-in profiler, or the same trace that `trace-merge` writes.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use trace_merge::{Error, Mode, Options, Output, Runs};

/// Merges the fragments of a folder into the file `trace`, without holding the GIL. Returns the number of events in the trace.
#[pyfunction]
#[pyo3(signature = (fragments, trace, /))]
pub(crate) fn merge(py: Python<'_>, fragments: PathBuf, trace: PathBuf) -> PyResult<u64> {
    py.detach(|| merge_into(fragments, &trace)).map_err(raised)
}

/// Merges run directories, fragments and other traces into `trace`, by default the run directory's `trace.json`. Returns the report as JSON and as text.
#[pyfunction]
#[pyo3(signature = (paths, trace, /))]
pub(crate) fn merge_report(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    trace: Option<PathBuf>,
) -> PyResult<(String, String)> {
    let options = Options {
        output: trace.map_or(Output::Default, Output::File),
        ..Options::new(paths)
    };
    let report = py.detach(|| trace_merge::merge(&options)).map_err(raised)?;
    let json = serde_json::to_string(&report);
    let json = json.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok((json, report.text()))
}

fn merge_into(fragments: PathBuf, trace: &Path) -> Result<u64, Error> {
    let options = Options {
        output: Output::File(trace.to_owned()),
        runs: Runs::InPlace,
        mode: Mode::Verbatim,
        allow_empty: true,
        ..Options::new([fragments])
    };
    trace_merge::merge(&options).map(|report| report.events.total)
}

fn raised(error: Error) -> PyErr {
    match error {
        Error::Write { path, source } => raised_of_file(&path, &source),
        other => PyOSError::new_err(other.to_string()),
    }
}

/// Converts an I/O error to the Python exception (an `OSError`) that Python's own functions raise, with its error number and path.
fn raised_of_file(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
