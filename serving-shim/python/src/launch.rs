//! Kernel launches, timed on the host and on the device.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serving_shim::{Launch as Timed, Walls};

use crate::call::integer;
use crate::point::encode_args;
use crate::{names, thread_setup, value};

/// A launch in progress on a thread. The same thread begins and ends a launch.
struct Open {
    owner: usize,
    /// Identifies the process, because a launch that a fork copied belongs to the parent.
    generation: u32,
    /// Not dropped if the thread ends during the launch, because the device's runtime must not be called any more at that point.
    timed: ManuallyDrop<Timed>,
}

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// Times the launch in a `with` block. Returned by `launch_timed`.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Launch {
    name: String,
    stream: usize,
    grid: u32,
    args: Option<Py<PyDict>>,
}

#[pymethods]
impl Launch {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let launch = slf.get();
        if sa_recorder::__wants(sa_recorder::Level::Kernel) {
            thread_setup::prepare_thread(slf.py());
            let stream = std::ptr::with_exposed_provenance_mut(launch.stream);
            let mut timed = Timed::begin(stream, &launch.name, launch.grid);
            if let Some(args) = &launch.args {
                add_args(&mut timed, args.bind(slf.py()));
            }
            let owner = slf.as_ptr().addr();
            let _ = OPEN.try_with(|open| {
                if let Ok(mut open) = open.try_borrow_mut() {
                    open.push(Open {
                        owner,
                        generation: thread_setup::generation(),
                        timed: ManuallyDrop::new(timed),
                    });
                }
            });
        }
        slf
    }

    /// Ends the timing of the kernel launch at the end of the `with` block. An exception in the block counts as a failed launch.
    #[pyo3(signature = (kind=None, value=None, traceback=None, /))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (value, traceback);
        let owner = slf.as_ptr().addr();
        let found = OPEN.try_with(|open| {
            let mut open = open.try_borrow_mut().ok()?;
            let at = open.iter().rposition(|one| one.owner == owner)?;
            Some(open.remove(at))
        });
        if let Ok(Some(open)) = found
            && open.generation == thread_setup::generation()
        {
            ManuallyDrop::into_inner(open.timed).end(if kind.is_some() { -1 } else { 0 });
        }
    }
}

fn add_args(timed: &mut Timed, args: &Bound<'_, PyDict>) {
    for (key, arg) in args.iter() {
        if let Ok(key) = key.extract::<String>() {
            timed.arg(&key, value::Encoded::new(&arg));
        }
    }
}

/// Times the launch in a `with` block: on the host, and between two events in the stream.
///
/// Arguments:
///     name: the kernel's name.
///     stream: the address of the stream, or 0 for the default stream.
///     grid: the number of blocks of the launch, or 0 if it is unknown.
///     args: any other keywords.
///
/// An example::
///
///     with sa_profile.launch_timed("matmul", stream=stream.npu_stream, grid=24):
///         launch()
#[pyfunction]
#[pyo3(
    signature = (name, /, *, stream=None, grid=None, **args),
    text_signature = "(name, /, *, stream=0, grid=0, **args)"
)]
pub(crate) fn launch_timed(
    name: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    grid: Option<&Bound<'_, PyAny>>,
    args: Option<Bound<'_, PyDict>>,
) -> PyResult<Launch> {
    Ok(Launch {
        name: names::text("name", name)?.into_owned(),
        stream: integer::parse_optional("stream", stream)?.unwrap_or(0),
        grid: integer::parse_optional("grid", grid)?.unwrap_or(0),
        args: args.map(Bound::unbind),
    })
}

/// Records a launch whose wall times the runtime has measured itself.
///
/// Arguments:
///     name: the kernel's name.
///     host_wall_ns, device_wall_ns: its duration on the host and on the device, in ns.
///     host_start_ns: its start on the host, in ns of `CLOCK_MONOTONIC`. By default it ends now.
///     device: the number of the device.
///     args: any other keywords.
///
/// An example::
///
///     sa_profile.launch_walls("matmul", host_wall_ns=52_000, device_wall_ns=40_000, device=0)
#[pyfunction]
#[pyo3(signature = (name, /, *, host_wall_ns, device_wall_ns, host_start_ns=None, device=None, **args))]
pub(crate) fn launch_walls(
    name: &Bound<'_, PyAny>,
    host_wall_ns: &Bound<'_, PyAny>,
    device_wall_ns: &Bound<'_, PyAny>,
    host_start_ns: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let text = names::text("name", name)?;
    let walls = Walls {
        name: &text,
        host_start_ns: integer::parse_optional("host_start_ns", host_start_ns)?,
        host_wall_ns: integer::parse("host_wall_ns", host_wall_ns)?,
        device_wall_ns: integer::parse("device_wall_ns", device_wall_ns)?,
        device: integer::parse_optional("device", device)?,
    };
    if sa_recorder::__wants(sa_recorder::Level::Kernel) {
        thread_setup::prepare_thread(name.py());
        serving_shim::launch_walls(&walls, &encode_args(args));
    }
    Ok(())
}
