//! vLLM's own stamps as times of the recorder, which counts `CLOCK_MONOTONIC` as `time.monotonic` does.

use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use sa_recorder::now_ns;

/// A wall clock that is set back must not place a request before the server's start.
const OLDEST_S: f64 = 3600.0;

/// Returns the time of a `time.monotonic` stamp, or `None` for anything else.
#[pyfunction]
#[pyo3(signature = (seconds, /))]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 10^18"
)]
pub(crate) fn of_monotonic(seconds: &Bound<'_, PyAny>) -> Option<u64> {
    let seconds = seconds.cast::<PyFloat>().ok()?.value();
    (0.0 < seconds && seconds < 1e9).then_some((seconds * 1e9) as u64)
}

/// Returns the time of a `time.time` stamp. Returns `None` for anything else, and for a time in the future or over an hour ago.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to an hour"
)]
pub(crate) fn of_wall(seconds: &Bound<'_, PyAny>) -> Option<u64> {
    let is_number = seconds.is_instance_of::<PyFloat>() || seconds.is_instance_of::<PyInt>();
    let seconds = seconds.extract::<f64>().ok().filter(|_| is_number)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ago = now.ok()?.as_secs_f64() - seconds;
    if !(0.0..=OLDEST_S).contains(&ago) || seconds == 0.0 {
        return None;
    }
    now_ns()
        .checked_sub((ago * 1e9) as u64)
        .filter(|ns| *ns > 0)
}
