//! Descriptions of code objects for slices. Each object is described once.

use std::collections::HashMap;
use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::Args;

/// Maximum number of code objects that are remembered, because a program may create any number of them.
const MAX_CODES: usize = 1 << 14;
/// Prefix of the file names of the interpreter's frozen modules, which import modules and start programs. Slices leave them out, as tracebacks do.
const FROZEN: &str = "<frozen ";
/// Name of the code of a module's body.
const MODULE: &str = "<module>";

/// A function, or a module's body, as slices show it.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// File and line of its definition.
    pub(super) args: Args,
}

/// Descriptions of code objects. Each remembered object is kept alive, so that no other object gets its address.
#[derive(Default)]
pub(super) struct Codes(HashMap<usize, (Py<PyAny>, Option<Rc<Function>>)>);

impl Codes {
    /// Returns the function whose `code` a stack frame runs, as the trace shows it (name, file and line). Returns `None` if the trace leaves it out, like the
    /// interpreter's own frozen modules.
    pub(super) fn function(
        &mut self,
        frame: &Bound<'_, PyAny>,
        code: Bound<'_, PyAny>,
    ) -> Option<Rc<Function>> {
        let key = code.as_ptr().addr();
        if let Some((_, function)) = self.0.get(&key) {
            return function.clone();
        }
        if self.0.len() >= MAX_CODES {
            self.0.clear();
        }
        let function = describe(frame, &code).ok().flatten().map(Rc::new);
        self.0.insert(key, (code.unbind(), function.clone()));
        function
    }
}

fn describe(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>) -> PyResult<Option<Function>> {
    let py = code.py();
    let file: String = code
        .getattr(PyString::intern(py, "co_filename"))?
        .extract()?;
    if file.starts_with(FROZEN) {
        return Ok(None);
    }
    let line: u32 = code
        .getattr(PyString::intern(py, "co_firstlineno"))?
        .extract()?;
    let qualified = code.getattr(PyString::intern(py, "co_qualname")); // Python 3.11
    let name = qualified.or_else(|_| code.getattr(PyString::intern(py, "co_name")))?;
    let mut name: String = name.extract()?;
    if name == MODULE
        && let Some(module) = module_of(frame)
    {
        name = format!("{MODULE} {module}");
    }
    let args = Args::new().with("file", file.as_str()).with("line", line);
    Ok(Some(Function { name, args }))
}

/// Returns the name of the module whose code a stack frame runs.
fn module_of(frame: &Bound<'_, PyAny>) -> Option<String> {
    let py = frame.py();
    let globals = frame.getattr(PyString::intern(py, "f_globals")).ok()?;
    globals
        .get_item(PyString::intern(py, "__name__"))
        .ok()?
        .extract()
        .ok()
}
