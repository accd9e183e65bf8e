//! What the kernel counts of the calling thread: how long it had a core, how long it waited for one, and how often it slept.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::mem::zeroed;

use pyo3::prelude::*;
use sa_recorder::host;

/// Has how long the thread had a core as of the last tick, how long it has waited for one, and how often. Opened each time: kept, it would be one for each thread that ever asks,
/// and the host may close it and use its number.
const COUNTS: &str = "/proc/thread-self/schedstat";

/// The calling thread's id, the ns in which it ran or waited for a core, and how often it has waited for something else. Raises `OSError` where the kernel does not tell.
#[pyfunction]
fn thread_counts() -> Result<(u32, u64, i64)> {
    Ok((host::tid(), used_ns()? + delayed_ns()?, sleeps()?))
}

/// The calling thread's id, and how often it has waited for something else than a core.
#[pyfunction]
fn thread_sleeps() -> Result<(u32, i64)> {
    Ok((host::tid(), sleeps()?))
}

fn used_ns() -> Result<u64> {
    // SAFETY: numbers, for which zeros are good.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: the place is the call's own.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if done != 0 {
        return Err(Error::last_os_error());
    }
    let whole = u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000;
    Ok(whole + u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn delayed_ns() -> Result<u64> {
    let mut text = [0; 100];
    let len = File::open(COUNTS)?.read(&mut text)?;
    let text = str::from_utf8(&text[..len]).unwrap_or_default();
    let delayed = text.split_ascii_whitespace().nth(1);
    let delayed = delayed.and_then(|number| number.parse().ok());
    delayed.ok_or_else(|| Error::from(ErrorKind::InvalidData))
}

fn sleeps() -> Result<i64> {
    // SAFETY: numbers, for which zeros are good.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: the place is the call's own.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    match done {
        0 => Ok(usage.ru_nvcsw),
        _ => Err(Error::last_os_error()),
    }
}

/// Adds what this file offers to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(thread_counts, module)?)?;
    module.add_function(wrap_pyfunction!(thread_sleeps, module)?)
}
