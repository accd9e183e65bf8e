//! HTTP requests of an engine's server: arrival times, and exchanges with the application.

mod arrival;
mod awake;
mod clock;
pub(crate) mod exchange;
mod silence;
mod ticks;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sa_recorder::{Levels, Recorder, now_ns};

use crate::attached::Attached;
use arrival::Arrivals;
use awake::ThisThread;

/// Key in a request's ASGI scope: time of its first byte, and the uncertainty of that time.
const RECEIVED: &str = "sa_profile.received";
/// Key in a request's ASGI scope: time at which the last part of its answer was sent.
const ANSWERED: &str = "sa_profile.answered_ns";

static ARRIVALS: Attached<Option<Arrivals<ThisThread>>> = Attached::new(None);

fn with_arrivals<R>(py: Python<'_>, act: impl FnOnce(&mut Arrivals<ThisThread>) -> R) -> Option<R> {
    ARRIVALS.with(py, |arrivals| {
        act(arrivals.get_or_insert_with(|| Arrivals::new(ThisThread)))
    })
}

/// Records that the event loop's thread starts to process the outputs of an engine step. Returns the value to pass to [`step_ended`], a reading of the coarse
/// clock.
pub(crate) fn step_began(py: Python<'_>) -> i64 {
    with_arrivals(py, Arrivals::step_began).unwrap_or(0)
}

/// Records that the event loop's thread has processed the outputs of an engine step. `since` is what [`step_began`] returned.
pub(crate) fn step_ended(py: Python<'_>, since: i64) {
    with_arrivals(py, |arrivals| arrivals.step_ended(since));
}

/// Observes how an HTTP server's protocol object reads the first byte of a request, and estimates when that byte arrived. Returns the function to call when
/// the observed call ends, which stores the time in the request's scope. Returns None if nothing is recorded.
#[pyfunction]
#[pyo3(signature = (protocol, *_args))]
pub(crate) fn message_begin<'py>(
    protocol: &Bound<'py, PyAny>,
    _args: &Bound<'py, PyTuple>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if Recorder::get().levels() == Levels::NONE {
        return Ok(None);
    }
    let py = protocol.py();
    let now_ns = signed(now_ns());
    let answered_ns = answered_ns(protocol).unwrap_or(0);
    let (ns, uncertainty_ns) = match descriptor(protocol) {
        Some(descriptor) => with_arrivals(py, |arrivals| {
            let arrival = arrivals.arrival(descriptor, now_ns, answered_ns);
            (arrival.ns, arrival.uncertainty_ns)
        })
        .unwrap_or((now_ns, 0)),
        None => (now_ns, 0),
    };
    let received = Received {
        protocol: protocol.clone().unbind(),
        ns,
        uncertainty_ns,
    };
    Bound::new(py, received)?
        .getattr(intern!(py, "leave"))
        .map(Some)
}

/// Returns the time at which the previous answer on the protocol's connection was sent, in ns, or `None` if there was none.
fn answered_ns(protocol: &Bound<'_, PyAny>) -> Option<i64> {
    let py = protocol.py();
    let scope = protocol.getattr_opt(intern!(py, "scope")).ok()??;
    let scope = scope.cast::<PyDict>().ok()?;
    scope.get_item(intern!(py, ANSWERED)).ok()??.extract().ok()
}

/// Returns the file descriptor of the socket that an HTTP server's protocol object uses, if it has one.
fn descriptor(protocol: &Bound<'_, PyAny>) -> Option<i32> {
    let py = protocol.py();
    let transport = protocol.getattr_opt(intern!(py, "transport")).ok()??;
    if transport.is_none() {
        return None;
    }
    let socket = (intern!(py, "socket"),);
    let socket = transport.call_method1(intern!(py, "get_extra_info"), socket);
    let socket = socket.ok().filter(|socket| !socket.is_none())?;
    let descriptor = socket.call_method0(intern!(py, "fileno")).ok()?;
    descriptor.extract().ok()
}

/// Arrival time of a request, until its protocol has a scope to store it in.
#[pyclass(frozen, module = "sa_profile")]
struct Received {
    protocol: Py<PyAny>,
    ns: i64,
    uncertainty_ns: i64,
}

#[pymethods]
impl Received {
    #[pyo3(signature = (result, error, /))]
    fn leave(&self, result: &Bound<'_, PyAny>, error: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if error.is_some() {
            return Ok(());
        }
        let py = result.py();
        let scope = self.protocol.bind(py).getattr(intern!(py, "scope"))?;
        scope.set_item(intern!(py, RECEIVED), (self.ns, self.uncertainty_ns))
    }
}

pub(crate) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Returns `object[key]`, or `None` if the object does not have this key.
fn item<'py>(object: &Bound<'py, PyAny>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let Ok(dict) = object.cast::<PyDict>() else {
        return object.get_item(key).ok();
    };
    dict.get_item(key).ok()?
}
