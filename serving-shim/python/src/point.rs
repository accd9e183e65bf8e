//! Events without an open state: instants, counters, flows, and spans that are recorded afterwards.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sa_recorder::{Args, FLOW_CATEGORY, FlowId, FlowPhase, Level, flow_at, flow_now, now_ns};

use crate::call::id::{self, Id};
use crate::call::{integer, misuse};
use crate::event::Event;
use crate::scratch::Scratch;
use crate::{lane, names, thread_setup, value};

/// Start time for events without a duration. It fits on any track.
pub(crate) const NOW: u64 = u64::MAX;

/// Records an instant on the track of the running code.
///
/// Arguments:
///     name: what happened.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     args: any other keywords.
///
/// An example::
///
///     sa_profile.instant("request.queued", cat="scheduler", request_id="cmpl-1", prompt_tokens=12)
#[pyfunction]
#[pyo3(
    signature = (name, /, *, cat=None, level=None, **args),
    text_signature = "(name, /, *, cat='e2e', level='e2e', **args)"
)]
pub(crate) fn instant(
    name: &Bound<'_, PyAny>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let level = names::level(level)?;
    if sa_recorder::__wants(level) {
        let text = Scratch::encode(args);
        thread_setup::prepare_thread(name.py());
        write_instant(&Event::new(level, cat, name, &text.0)?);
    }
    Ok(())
}

/// Writes an instant, as `event` describes it, on the track of the running task or thread. Its time is now.
pub(crate) fn write_instant(event: &Event<'_, '_>) {
    match lane::task_track(event.py(), NOW) {
        Some(track) => event.instant_on_track(track, now_ns()),
        None => event.instant_on_thread(),
    }
}

/// Records numbers over time, which viewers draw as a graph.
///
/// Arguments:
///     name: what is counted.
///     level: level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     series: a number for each keyword. A bool counts as 0 or 1. A value that is not a finite number is left out and counted, and stderr gets one line about it.
///
/// An example::
///
///     sa_profile.counter("requests", running=3, waiting=1)
#[pyfunction]
#[pyo3(
    signature = (name, /, *, level=None, **series),
    text_signature = "(name, /, *, level='e2e', **series)"
)]
pub(crate) fn counter(
    name: &Bound<'_, PyAny>,
    level: Option<&Bound<'_, PyAny>>,
    series: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let level = names::level(level)?;
    if sa_recorder::__wants(level) {
        let mut text = Scratch::empty();
        for (key, value) in series.into_iter().flatten() {
            push_series(&mut text.0, &key, &value);
        }
        write_counter(level, name, &text.0)?;
    }
    Ok(())
}

/// Appends one series of a counter, `"name":number`, to the encoded series in `text`. Warns once if the value is not a finite number.
pub(crate) fn push_series(text: &mut Vec<u8>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    if !value::push_series(text, key, value) {
        misuse::warn_not_a_number(key, value);
    }
}

/// Writes a counter with these encoded series. Writes nothing if there are none.
pub(crate) fn write_counter(level: Level, name: &Bound<'_, PyAny>, series: &[u8]) -> PyResult<()> {
    if series.is_empty() {
        return Ok(());
    }
    thread_setup::prepare_thread(name.py());
    let category = Some(intern!(name.py(), "counter").as_any());
    Event::new(level, category, name, series)?.counter();
    Ok(())
}

/// Records an event of a flow: an arrow from the span around its start to the spans around its steps and its end.
///
/// Arguments:
///     name: name of the arrow.
///     id: identifies the arrow. A str or a UUID is the same arrow in every process, an int from 0 to 2**64 - 1 only in this process.
///     phase: `"start"`, `"step"` or `"end"`.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     global_: true if an int is the same arrow in every process too.
///     ts_ns: the time, in ns of `CLOCK_MONOTONIC`, by default now.
///
/// An example::
///
///     with sa_profile.span("submit"):
///         sa_profile.flow("batch", batch.id, "start")
///     with sa_profile.span("run"):        # in any process
///         sa_profile.flow("batch", batch.id, "end")
#[pyfunction]
#[pyo3(
    signature = (name, id, phase, /, *, cat=None, level=None, global_=false, ts_ns=None),
    text_signature = "(name, id, phase, /, *, cat='flow', level='e2e', global_=False, ts_ns=None)"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of a flow, each of its own kind"
)]
pub(crate) fn flow(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    id: &Bound<'_, PyAny>,
    phase: &Bound<'_, PyAny>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    global_: bool,
    ts_ns: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (name, cat) = (
        names::text("name", name)?,
        names::category(cat, FLOW_CATEGORY)?,
    );
    let level = names::level(level)?;
    let (id, phase) = (flow_id(id, global_)?, flow_phase(phase)?);
    let ts_ns = integer::parse_optional("ts_ns", ts_ns)?;
    if sa_recorder::__wants(level) {
        write_flow(py, level, phase, (&cat, &name), id, ts_ns);
    }
    Ok(())
}

/// Writes an event of a flow arrow (its start, a step or its end) on the track of the running task or thread. Its time is `ts_ns`, or now.
pub(crate) fn write_flow(
    py: Python<'_>,
    level: Level,
    phase: FlowPhase,
    (category, name): (&str, &str),
    id: FlowId,
    ts_ns: Option<u64>,
) {
    thread_setup::prepare_thread(py);
    match (lane::task_track(py, NOW), ts_ns) {
        (Some(track), ts_ns) => {
            let ts_ns = ts_ns.unwrap_or_else(now_ns);
            track.flow(level, phase, category, name, id, ts_ns);
        }
        (None, Some(ts_ns)) => flow_at(level, phase, category, name, id, ts_ns),
        (None, None) => flow_now(level, phase, category, name, id),
    }
}

/// Parses the phase of a flow event: `"start"`, `"step"` or `"end"`.
pub(crate) fn flow_phase(phase: &Bound<'_, PyAny>) -> PyResult<FlowPhase> {
    match &*names::text("phase", phase)? {
        "start" => Ok(FlowPhase::Start),
        "step" => Ok(FlowPhase::Step),
        "end" => Ok(FlowPhase::End),
        phase => Err(PyValueError::new_err(format!(
            "phase: expected one of start, step, end, found {phase:?}"
        ))),
    }
}

/// Converts a Python object to the id of a flow arrow. A text or a UUID is the same flow in every process, and an int only if `global` is true.
pub(crate) fn flow_id(id: &Bound<'_, PyAny>, global: bool) -> PyResult<FlowId> {
    let number = match id::parse("id", id)? {
        Id::Text(text) => return Ok(FlowId::from_text(&text.to_string_lossy())),
        Id::Number(number) => number,
    };
    let number = number.extract::<u64>().map_err(|_| {
        PyValueError::new_err(format!(
            "id: expected an int from 0 to 2**64 - 1, found {id}"
        ))
    })?;
    Ok(if global {
        FlowId::Global(number)
    } else {
        FlowId::Process(number)
    })
}

/// Records a span that has already ended, on the track of the running code.
///
/// Arguments:
///     name: what took the time.
///     dur_ns: its duration in ns. Values below 0 count as 0.
///     start_ns: its start, in ns of `CLOCK_MONOTONIC`. By default it ends now.
///     cat, level: category, and level of detail: `"e2e"`, `"kernel"` or `"verbose"`.
///     args: any other keywords.
///
/// An example::
///
///     began_ns = sa_profile.now_ns()
///     load()
///     sa_profile.duration("load", start_ns=began_ns, dur_ns=sa_profile.now_ns() - began_ns, bytes=4096)
#[pyfunction]
#[pyo3(
    signature = (name, /, *, dur_ns, start_ns=None, cat=None, level=None, **args),
    text_signature = "(name, /, *, dur_ns, start_ns=None, cat='e2e', level='e2e', **args)"
)]
pub(crate) fn duration(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    dur_ns: &Bound<'_, PyAny>,
    start_ns: Option<&Bound<'_, PyAny>>,
    cat: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let (name, level) = (names::text("name", name)?, names::level(level)?);
    let cat = names::category(cat, names::DEFAULT_CATEGORY)?;
    let start_ns = integer::parse_optional("start_ns", start_ns)?;
    let times = (start_ns, integer::parse("dur_ns", dur_ns)?);
    if sa_recorder::__wants(level) {
        write_duration(py, level, (&cat, &name), times, &encode_args(args));
    }
    Ok(())
}

/// Records a span that has already ended, by its start and its duration in ns, on the calling thread's track, even if a task is running on the thread.
#[pyfunction]
#[pyo3(signature = (name, cat, start_ns, dur_ns, args, /))]
pub(crate) fn thread_duration(
    py: Python<'_>,
    name: &str,
    cat: &str,
    start_ns: u64,
    dur_ns: i64,
    args: &Bound<'_, PyDict>,
) {
    if sa_recorder::__wants(Level::E2e) {
        thread_setup::prepare_thread(py);
        let args = encode_args(Some(args));
        sa_recorder::duration(Level::E2e, cat, name, dur_ns, Some(start_ns), &args);
    }
}

/// Writes a span that has already ended on the track of the running task or thread. Without `start_ns`, it ends now.
pub(crate) fn write_duration(
    py: Python<'_>,
    level: Level,
    (category, name): (&str, &str),
    (start_ns, dur_ns): (Option<u64>, i64),
    args: &Args,
) {
    thread_setup::prepare_thread(py);
    let length_ns = u64::try_from(dur_ns).unwrap_or(0);
    let since_ns = start_ns.unwrap_or_else(|| now_ns().saturating_sub(length_ns));
    match lane::task_track(py, since_ns) {
        Some(track) => track.duration(level, category, name, since_ns, length_ns, args),
        None => sa_recorder::duration(level, category, name, dur_ns, start_ns, args),
    }
}

/// Records a span without args that began at `began_ns`, in ns of `CLOCK_MONOTONIC`, and ends now. Returns the time of its end.
#[pyfunction]
#[pyo3(signature = (name, category, began_ns, /))]
pub(crate) fn record_since(py: Python<'_>, name: &str, category: &str, began_ns: u64) -> u64 {
    let end_ns = now_ns();
    if sa_recorder::__wants(Level::E2e) {
        let took_ns = i64::try_from(end_ns.saturating_sub(began_ns)).unwrap_or(i64::MAX);
        let times = (Some(began_ns), took_ns);
        write_duration(py, Level::E2e, (category, name), times, &Args::new());
    }
    end_ns
}

/// Encodes a dict of keywords as args for the recorder.
pub(crate) fn encode_args(dict: Option<&Bound<'_, PyDict>>) -> Args {
    Args::from_text(std::mem::take(&mut Scratch::encode(dict).0))
}
