//! Warnings about calls that cannot record anything: one line on stderr for the first of each kind. The program continues.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use sa_format::visible;

static WARNED_NOT_A_NUMBER: AtomicBool = AtomicBool::new(false);
static WARNED_END_WITHOUT_BEGIN: AtomicBool = AtomicBool::new(false);

/// Warns on stderr that the value of a counter's series is not a finite number. Only the first one in the process is reported, because a loop may have a
/// thousand names.
#[cold]
pub(crate) fn warn_not_a_number(series: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    if is_first(&WARNED_NOT_A_NUMBER) {
        let found = describe_value(value);
        let text =
            format!("counter(): {series}: expected a finite number, found {found}: it is left out");
        say(series.py(), &text);
    }
}

/// Describes a value that is not a finite number, for a warning: the digits of a float, or the type name of anything else.
fn describe_value(value: &Bound<'_, PyAny>) -> String {
    match value.cast::<PyFloat>() {
        Ok(number) => number.value().to_string(),
        Err(_) => value
            .get_type()
            .name()
            .map_or_else(|_| String::new(), |name| name.to_string()),
    }
}

/// Warns on stderr, once, that `sa_profile.end` was called although no span from `sa_profile.begin` is open.
#[cold]
pub(crate) fn end_without_begin(py: Python<'_>) {
    if is_first(&WARNED_END_WITHOUT_BEGIN) {
        say(
            py,
            "end() without a begin() in this task or thread: nothing was ended",
        );
    }
}

/// Writes a line with the prefix `sa_profile: ` to `sys.stderr`. Errors are ignored.
fn say(py: Python<'_>, text: &str) {
    let line = format!("sa_profile: {}\n", visible(text));
    let write = || -> PyResult<()> {
        let stderr = py.import("sys")?.getattr("stderr")?;
        if !stderr.is_none() {
            stderr.call_method1("write", (line,))?;
            stderr.call_method0("flush")?;
        }
        Ok(())
    };
    let _ = write(); // the message is not essential
}

/// Reports, once, that `function`, which a hook called, has failed with `error`. Returns an error that is not an `Exception`, such as `KeyboardInterrupt`,
/// instead of reporting it, because it is meant for the host.
#[cold]
pub(crate) fn failed(py: Python<'_>, function: &str, error: PyErr) -> PyResult<()> {
    if !error.is_instance_of::<PyException>(py) {
        return Err(error);
    }
    if let Ok(warnings) = py.import("sa_profile._hooks.warnings") {
        let _ = warnings.call_method1("failed", (function, error)); // the message is not essential
    }
    Ok(())
}

fn is_first(warned: &AtomicBool) -> bool {
    !warned.swap(true, Ordering::Relaxed)
}
