//! The recording that the environment asks for. Reading it does not start the recorder, which would create files.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sa_recorder::{Config, Keep, Level, host};

use crate::names;

/// Returns the recording configuration that the environment variables of this process ask for, as a dict, or None if they ask for no recording.
#[pyfunction]
pub(crate) fn configuration(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(config) = Config::from_lookup(host::variable) else {
        return Ok(None);
    };
    let found = PyDict::new(py);
    found.set_item("directory", config.paths.directory)?;
    found.set_item("trace", config.paths.trace)?;
    let all = [Level::E2e, Level::Kernel, Level::Verbose].into_iter();
    let on = all.filter(|level| config.levels.0 & level.bit() != 0);
    let on: Vec<&str> = on.map(names::level_name).collect();
    found.set_item("levels", PyTuple::new(py, on)?)?;
    found.set_item("paused", config.paused)?;
    found.set_item("run", config.run)?;
    found.set_item("main_pid", config.main_pid)?;
    found.set_item("max_bytes", config.max_bytes)?;
    let keep = match config.keep {
        Keep::Last => "last",
        Keep::First => "first",
    };
    found.set_item("keep", keep)?;
    found.set_item("warnings", PyTuple::new(py, config.warnings)?)?;
    Ok(Some(found))
}
