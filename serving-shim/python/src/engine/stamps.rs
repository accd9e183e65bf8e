//! Converts an engine's stamps to times of the recorder, which uses `CLOCK_MONOTONIC` like `time.monotonic` and `time.perf_counter`.

use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use sa_recorder::now_ns;

/// Maximum age of a stamp. A wall clock that was set back must not place a request before the server's start.
const OLDEST_S: f64 = 3600.0;

/// Converts a stamp of `time.monotonic` (seconds) to the recorder's time in ns. Returns None for anything else.
#[pyfunction]
#[pyo3(signature = (seconds, /))]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 10^18"
)]
pub(crate) fn from_monotonic(seconds: &Bound<'_, PyAny>) -> Option<u64> {
    let seconds = seconds.cast::<PyFloat>().ok()?.value();
    (0.0 < seconds && seconds < 1e9).then_some((seconds * 1e9) as u64)
}

/// Converts a stamp of `time.time` (seconds) to the recorder's time in ns. Returns `None` for anything else, for a time in the future and for one over an hour
/// ago.
#[pyfunction]
#[pyo3(signature = (seconds, /))]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to an hour"
)]
pub(crate) fn from_wall_clock(seconds: &Bound<'_, PyAny>) -> Option<u64> {
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
