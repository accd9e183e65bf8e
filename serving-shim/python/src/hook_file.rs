//! Reads files of hooks for the Python package, which applies them.

use std::panic::catch_unwind;
use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sa_hooks::{Arg, Hook, Root, Step};

/// Reads a file of hooks. Returns its hooks as dicts, and a text about what it contains without a meaning here, or None. Raises a ValueError if the file
/// cannot be used.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn read_hooks(path: PathBuf) -> PyResult<(Vec<HookFields>, Option<String>)> {
    // A panic of the YAML parser would reach the program as a BaseException.
    let file = catch_unwind(|| sa_hooks::read(&path))
        .map_err(|_| PyValueError::new_err(format!("{}: cannot be parsed", path.display())))?
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let hooks = file.hooks.into_iter().map(HookFields::from).collect();
    Ok((hooks, file.ignored))
}

/// Returns true if a version of a package is within bounds, which may be None. Returns None if the text is not a version.
#[pyfunction]
#[pyo3(signature = (version, least, greatest, /))]
pub(crate) fn is_version_between(
    version: &str,
    least: Option<&str>,
    greatest: Option<&str>,
) -> Option<bool> {
    sa_hooks::is_version_between(version, least, greatest)
}

/// A hook as a dict.
#[derive(IntoPyObject)]
pub(crate) struct HookFields {
    module: String,
    function: String,
    name: Option<String>,
    category: String,
    level: &'static str,
    args: Vec<ArgFields>,
    package: String,
    min_version: Option<String>,
    max_version: Option<String>,
}

impl From<Hook> for HookFields {
    fn from(hook: Hook) -> HookFields {
        HookFields {
            module: hook.module,
            function: hook.function,
            name: hook.name,
            category: hook.category,
            level: hook.level.name(),
            args: hook.args.into_iter().map(ArgFields).collect(),
            package: hook.package,
            min_version: hook.min_version,
            max_version: hook.max_version,
        }
    }
}

/// An arg as a tuple: name, text, root, steps, and whether the arg is a length. The root is the name or the position of a parameter, or None for the result. A
/// step is a tuple of its kind and its value.
struct ArgFields(Arg);

impl<'py> IntoPyObject<'py> for ArgFields {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Arg { name, text, path } = self.0;
        let root = match path.root {
            Root::Result => py.None().into_bound(py),
            Root::Parameter(parameter) => parameter.into_bound_py_any(py)?,
            Root::Position(position) => position.into_bound_py_any(py)?,
        };
        let steps: PyResult<Vec<_>> = path
            .steps
            .into_iter()
            .map(|step| step_fields(py, step))
            .collect();
        (name, text, root, PyTuple::new(py, steps?)?, path.is_length).into_pyobject(py)
    }
}

fn step_fields(py: Python<'_>, step: Step) -> PyResult<Bound<'_, PyTuple>> {
    match step {
        Step::Attribute(name) => ("attribute", name).into_pyobject(py),
        Step::Index(index) => ("index", index).into_pyobject(py),
        Step::Key(key) => ("key", key).into_pyobject(py),
        Step::Each => ("each", py.None()).into_pyobject(py),
    }
}
