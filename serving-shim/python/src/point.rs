//! Events without an extent of their own: instants, counters, flows, and spans told afterwards.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{Args, FlowId, FlowPhase, Level, flow_at, flow_now, now_ns};

use crate::call::{self, Call};
use crate::event::Event;
use crate::names;
use crate::{args, lane, start, value};

/// As the start of what takes no time: it fits on any row.
pub(crate) const NOW: u64 = u64::MAX;

fn instant(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let [name] = call.positional(["name"])?;
    write(call, &name, None, tell_instant)
}

/// Writes an instant on the row of the running code.
pub(crate) fn tell_instant(event: &Event<'_, '_>) {
    match lane::task_row(event.py(), NOW) {
        Some(row) => event.instant_on_row(row),
        None => event.instant_on_thread(),
    }
}

fn counter(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let [name] = call.positional(["name"])?;
    let category = PyString::intern(call.py, "counter");
    write(call, &name, Some(category.as_any()), |event| {
        event.counter();
    })
}

/// Writes an event of the call's keywords if its level is recorded.
fn write<'py>(
    call: &Call<'_, 'py>,
    name: &Bound<'py, PyAny>,
    category: Option<&Bound<'py, PyAny>>,
    write: impl FnOnce(&Event<'_, '_>),
) -> PyResult<*mut ffi::PyObject> {
    let level = args::level(call)?;
    if sa_recorder::__wants(level) {
        let keywords = args::keywords(call)?;
        let category = category.or(keywords.category.as_deref());
        start::prepare_thread(call.py);
        write(&Event {
            named: names::named(level, category, name)?,
            category,
            name,
            args: &keywords.text.0,
        });
    }
    Ok(call.py.None().into_ptr())
}

/// An event of a flow: an arrow from the span that encloses its start to those around its steps and its end.
#[pyfunction]
#[pyo3(signature = (name, id, phase, /, *, cat="flow", level="e2e", global_=false, ts_ns=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of a flow, each of its own kind"
)]
fn flow(
    py: Python<'_>,
    name: &str,
    id: &Bound<'_, PyAny>,
    phase: &str,
    cat: &str,
    level: &str,
    global_: bool,
    ts_ns: Option<u64>,
) -> PyResult<()> {
    let level = names::level_of(level)?;
    let phase = match phase {
        "start" => FlowPhase::Start,
        "step" => FlowPhase::Step,
        "end" => FlowPhase::End,
        _ => {
            return Err(PyValueError::new_err(format!(
                "phase: expected one of start, step, end, found {phase:?}"
            )));
        }
    };
    let id = flow_id(id, global_)?;
    if sa_recorder::__wants(level) {
        start::prepare_thread(py);
        match (lane::task_row(py, NOW), ts_ns) {
            (Some(row), ts_ns) => {
                let ts_ns = ts_ns.unwrap_or_else(now_ns);
                row.flow(level, phase, cat, name, id, ts_ns);
            }
            (None, Some(ts_ns)) => flow_at(level, phase, cat, name, id, ts_ns),
            (None, None) => flow_now(level, phase, cat, name, id),
        }
    }
    Ok(())
}

/// A text stands for the same flow in every process.
fn flow_id(id: &Bound<'_, PyAny>, global: bool) -> PyResult<FlowId> {
    if let Ok(text) = id.cast::<PyString>() {
        let text = text.to_string_lossy();
        return Ok(FlowId::of(&text));
    }
    let number = id.extract::<u64>().map_err(|_| {
        let found = id.get_type();
        PyTypeError::new_err(format!(
            "id: expected a str or an int from 0 to 2**64 - 1, found {found}"
        ))
    })?;
    Ok(if global {
        FlowId::Global(number)
    } else {
        FlowId::Process(number)
    })
}

/// A span that has ended already.
#[pyfunction]
#[pyo3(signature = (name, /, *, dur_ns, start_ns=None, cat="e2e", level="e2e", **args))]
fn duration(
    py: Python<'_>,
    name: &str,
    dur_ns: i64,
    start_ns: Option<u64>,
    cat: &str,
    level: &str,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let level = names::level_of(level)?;
    if sa_recorder::__wants(level) {
        let args = text_of(args);
        tell_duration(py, level, (cat, name), (start_ns, dur_ns), &args);
    }
    Ok(())
}

/// A span that has ended, on the row of the calling thread, whatever task runs on it.
#[pyfunction]
#[pyo3(signature = (name, cat, start_ns, dur_ns, args, /))]
fn thread_duration(
    py: Python<'_>,
    name: &str,
    cat: &str,
    start_ns: u64,
    dur_ns: i64,
    args: &Bound<'_, PyDict>,
) {
    if sa_recorder::__wants(Level::E2e) {
        start::prepare_thread(py);
        let args = text_of(Some(args));
        sa_recorder::duration(Level::E2e, cat, name, dur_ns, Some(start_ns), &args);
    }
}

/// Writes a span that has ended on the row of the running code.
pub(crate) fn tell_duration(
    py: Python<'_>,
    level: Level,
    (category, name): (&str, &str),
    (start_ns, dur_ns): (Option<u64>, i64),
    args: &Args,
) {
    start::prepare_thread(py);
    let wanted_ns = u64::try_from(dur_ns).unwrap_or(0);
    let since_ns = start_ns.unwrap_or_else(|| now_ns().saturating_sub(wanted_ns));
    match lane::task_row(py, since_ns) {
        Some(row) => row.duration(level, category, name, since_ns, wanted_ns, args),
        None => sa_recorder::duration(level, category, name, dur_ns, start_ns, args),
    }
}

/// The args that a dict holds.
pub(crate) fn text_of(dict: Option<&Bound<'_, PyDict>>) -> Args {
    let mut text = Vec::new();
    if let Some(dict) = dict {
        value::push_all(&mut text, dict);
    }
    Args::from_text(text)
}

call::entries! {
    instant_entry => "instant", instant;
    counter_entry => "counter", counter;
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(flow, module)?)?;
    module.add_function(wrap_pyfunction!(duration, module)?)?;
    module.add_function(wrap_pyfunction!(thread_duration, module)?)?;
    call::add(
        module,
        c"instant",
        instant_entry,
        c"instant(name, /, *, cat='e2e', level='e2e', **args)\n--\n\nAn instant.",
    )?;
    call::add(
        module,
        c"counter",
        counter_entry,
        c"counter(name, /, *, level='e2e', **series)\n--\n\nA counter: one number for each series.",
    )
}
