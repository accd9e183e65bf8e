//! Makes all copies of the package in a process share one recorder. If the package is imported under several names, each copy loads a copy of this library with
//! its own statics. The first copy publishes its module in `sys`, and the others take over the contents of that module.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Attribute of `sys` that holds the first copy.
const FIRST: &str = "_sa_profile_extension";
/// Version of this copy. In another version, the same names may mean something else.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Replaces the contents of this Python module with those of the first copy of it that the process has loaded. Returns false if the process has no other copy
/// of this version.
pub(crate) fn adopt(module: &Bound<'_, PyModule>) -> PyResult<bool> {
    let sys = module.py().import(intern!(module.py(), "sys"))?;
    let Ok(first) = sys.getattr(FIRST) else {
        return Ok(false);
    };
    let version = first.getattr("__version__");
    if !version.is_ok_and(|version| version.eq(VERSION).unwrap_or(false)) {
        return Ok(false);
    }
    let own = module.dict();
    let offered = first.getattr("__dict__")?.cast_into::<PyDict>()?;
    for (name, value) in offered.iter() {
        let is_of_module = name.to_string().starts_with("__"); // the module's own name, spec and file
        if !is_of_module || !own.contains(&name)? {
            own.set_item(name, value)?;
        }
    }
    Ok(true)
}

/// Stores this module in `sys`, where copies of it that are loaded later find it.
pub(crate) fn offer(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", VERSION)?;
    let sys = module.py().import(intern!(module.py(), "sys"))?;
    match sys.hasattr(FIRST)? {
        true => Ok(()), // a copy of another version
        false => sys.setattr(FIRST, module),
    }
}
