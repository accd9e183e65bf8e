//! The extension of the Python package `sa_profile`: the recorder for Python.
//!
//! **Data flow.** A call's keywords become JSON text at once (`scratch`, `value`). Its name finds the text that all events of that name share (`names`).
//! A span begins and ends on the lane of the running code (`lane`), which is the thread or the asyncio task (`task`, `tasks`). The recorder does the
//! rest.
//!
//! **Locks.** No code of Python runs while a lock of ours is held, since it could come back here. The interpreter's own lock is held throughout,
//! except while files are written.
#![expect(
    unsafe_code,
    reason = "asks the interpreter what pyo3 has no safe call for"
)]

mod async_span;
mod attached;
mod call;
mod configuration;
mod copies;
mod engine;
mod event;
mod interpreter;
mod lane;
mod launch;
mod merge;
mod names;
mod point;
mod process;
mod profile;
mod scratch;
mod session;
mod span;
mod start;
mod task;
mod tasks;
mod value;

use pyo3::prelude::*;

// `attached` stands on it.
#[pymodule(gil_used = true)]
fn _sa_profile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if copies::adopt(module)? {
        return Ok(());
    }
    // Functions take it as their module's, and pickle finds them by it. A copy of the package has a name of its own.
    if module.name()? == "sa_profile_startup._sa_profile" {
        module.setattr("__name__", "sa_profile._sa_profile")?;
    }
    span::add(module)?;
    point::add(module)?;
    engine::add(module)?;
    async_span::add(module)?;
    launch::add(module)?;
    call::misuse::add(module)?;
    process::add(module)?;
    configuration::add(module)?;
    session::add(module)?;
    interpreter::add(module)?;
    profile::add(module)?;
    merge::add(module)?;
    copies::offer(module)
}
