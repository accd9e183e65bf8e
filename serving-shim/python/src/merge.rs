//! The merge, for the drop-in profiler: lines as they stand, in one file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use trace_merge::{Error, Options, Output, Runs};

/// What a trace without events is.
const NO_EVENTS: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n";

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
        ..Options::new([fragments])
    };
    match trace_merge::merge(&options) {
        Ok(report) => Ok(report.events_total),
        Err(Error::NothingUsable(_)) => {
            let written = write_whole(trace, NO_EVENTS.as_bytes());
            let path = trace.to_owned();
            written.map_err(|source| Error::Write { path, source })?;
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// Writes a file that takes its name when it is whole.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.tmp", std::process::id()));
    // A file of that name, or a link, may be anybody's.
    let mut file = File::create_new(&draft)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&draft); // only tidying
    })
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
