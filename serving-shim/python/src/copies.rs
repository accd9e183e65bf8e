//! One recorder for a process that imports the package under several names. Each copy of the package brings a copy of this library, with
//! statics of its own. The first one that is imported offers what it has, and the others pass that on.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Where in `sys` the first one stands.
const FIRST: &str = "_sa_profile_extension";
/// Another version may mean something else by the same names.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Replaces this module's contents with those of the first copy in the process. Returns false if the process has no copy of this version.
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
        let is_of_module = name.to_string().starts_with("__"); // its own name, spec and file
        if !is_of_module || !own.contains(&name)? {
            own.set_item(name, value)?;
        }
    }
    Ok(true)
}

/// Offers the module to others of the process.
pub(crate) fn offer(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", VERSION)?;
    let sys = module.py().import(intern!(module.py(), "sys"))?;
    match sys.hasattr(FIRST)? {
        true => Ok(()), // of another version
        false => sys.setattr(FIRST, module),
    }
}
