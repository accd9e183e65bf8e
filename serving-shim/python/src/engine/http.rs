//! HTTP requests of an engine's server: when each arrived, and its exchange with the application.

mod arrival;
pub(crate) mod exchange;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sa_recorder::{Levels, Recorder, now_ns};

use arrival::{Arrival, arrival};

/// Key of a request's ASGI scope: when its first byte came, and how far off that may be.
const RECEIVED: &str = "sa_profile.received";
/// Key of a request's ASGI scope: when the last part of its answer was sent.
const ANSWERED: &str = "sa_profile.answered_ns";

/// Observes that a server's protocol has read the first byte of a request.
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
    let arrival = match descriptor(protocol) {
        Some(descriptor) => arrival(descriptor, now_ns, answered_ns(protocol).unwrap_or(0)),
        None => Arrival::exact(now_ns),
    };
    let received = Received {
        protocol: protocol.clone().unbind(),
        arrival,
    };
    Bound::new(py, received)?
        .getattr(intern!(py, "leave"))
        .map(Some)
}

/// Returns when the last answer of this connection was sent.
fn answered_ns(protocol: &Bound<'_, PyAny>) -> Option<i64> {
    let py = protocol.py();
    let scope = protocol.getattr_opt(intern!(py, "scope")).ok()??;
    let scope = scope.cast::<PyDict>().ok()?;
    scope.get_item(intern!(py, ANSWERED)).ok()??.extract().ok()
}

/// Returns the descriptor of a protocol's connection, if it has one.
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

/// When a request arrived, until its protocol has a scope for it.
#[pyclass(frozen, module = "sa_profile")]
struct Received {
    protocol: Py<PyAny>,
    arrival: Arrival,
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
        scope.set_item(
            intern!(py, RECEIVED),
            (self.arrival.ns, self.arrival.uncertainty_ns),
        )
    }
}

pub(crate) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The value of a key, if this is a dict that has it.
fn item<'py>(of: &Bound<'py, PyAny>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let Ok(dict) = of.cast::<PyDict>() else {
        return of.get_item(key).ok();
    };
    dict.get_item(key).ok()?
}
