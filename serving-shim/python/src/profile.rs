//! Events of the drop-in profiler, whose args are in a dict.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{Args, Recorder};

use crate::event::Event;
use crate::point::{encode_args, write_duration, write_instant};
use crate::scratch::Scratch;
use crate::{names, thread_setup};

/// Args of an event that has the member `args` but nothing in it. The recorder writes the member if there is any text.
pub(crate) const NO_ARGS: &[u8] = b" ";

/// Adds a space to encoded args that are empty, so that the event has the member `args` anyway.
pub(crate) fn keep_member(args: &mut Vec<u8>) {
    if args.is_empty() {
        args.extend_from_slice(NO_ARGS);
    }
}

/// Records an instant for the drop-in profiler, whose args are in a dict.
#[pyfunction]
#[pyo3(signature = (name, category, level, args, /))]
pub(crate) fn dict_instant<'py>(
    name: &Bound<'py, PyString>,
    category: &Bound<'py, PyString>,
    level: &str,
    args: Option<&Bound<'py, PyDict>>,
) -> PyResult<()> {
    let level = names::level_of(level)?;
    if !sa_recorder::__wants(level) {
        return Ok(());
    }
    thread_setup::prepare_thread(name.py());
    let mut text = Scratch::encode(args);
    keep_member(&mut text.0);
    write_instant(&Event::new(level, Some(category), name, &text.0)?);
    Ok(())
}

/// Records a span that has already ended for the drop-in profiler, whose args are in a dict. Without `start_ns`, it ends now.
#[pyfunction]
#[pyo3(signature = (name, category, level, dur_ns, start_ns, args, /))]
pub(crate) fn dict_duration(
    name: &Bound<'_, PyString>,
    category: &str,
    level: &str,
    dur_ns: i64,
    start_ns: Option<u64>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let level = names::level_of(level)?;
    if sa_recorder::__wants(level) {
        let mut text = Scratch::encode(args);
        keep_member(&mut text.0);
        let name_text = name.to_string_lossy();
        let names = (category, name_text.as_ref());
        let args = Args::from_text(std::mem::take(&mut text.0));
        write_duration(name.py(), level, names, (start_ns, dur_ns), &args);
    }
    Ok(())
}

/// Records metadata, such as a name, about the process or, if `tid` is given, about the thread with this id.
#[pyfunction]
#[pyo3(signature = (name, tid, args, /))]
pub(crate) fn metadata(name: &str, tid: Option<u64>, args: &Bound<'_, PyDict>) {
    let args = encode_args(Some(args));
    Recorder::get().metadata(name, tid, &args);
}
