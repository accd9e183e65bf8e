//! Times kernel launches on the host and on the device, and puts the device's streams into the trace next to the threads that launched.
//!
//! ```no_run
//! # unsafe fn my_launch(_: *mut std::ffi::c_void) -> i32 { 0 }
//! # let stream = std::ptr::null_mut();
//! // The closure launches into `stream` and returns the runtime's code.
//! let code = serving_shim::launch_timed(stream, "matmul", || unsafe { my_launch(stream) });
//! ```
//!
//! **Data flow.** An event goes into the stream before a launch and another one after it, and a span is written on the launching thread. A thread for each
//! device periodically checks if the second event has completed. Then it reads both times, places them on the host's axis, and writes a slice
//! on the stream's track. The slice has `host_wall_us`, `device_wall_us` and a flow from the launch's span. The shim never waits for a stream.
//!
//! **A slice** is the time between two events in a stream. If `host_limited` is true, the slice begins before the launch call
//! returned. The slice then includes time in which the device waited for the host, and is an upper bound. The argument `uncertainty_us` bounds the
//! error of the start.
//!
//! **Guarantees.** A time that cannot belong to its launch is rejected and counted, never moved into place. Nothing is put into a stream that is being captured,
//! and no event is queried while any stream is. A failing runtime costs slices, never a launch, whose result is returned unchanged. The trace's
//! counter `launches` shows the outcomes of all launches.
//!
//! **Which runtime.** `SA_PROFILE_DEVICE` selects it: `auto` or `ascend` (the vendor's, if it is installed), `sim`, `off`. Without a runtime, launches are
//! only recorded on the host. `mspti` adds the vendor's records of kernels, including the ones inside replays, on separate tracks. The error of their times has no known bound.
//!
//! **Cost.** One load while the level `kernel` is off, and four calls of the runtime for a timed launch of the preload library (five in Rust). `cargo bench -p serving-shim` prints the rest.

#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::disallowed_macros
    )
)]

mod clock;
mod config;
mod description;
mod device;
mod device_stream;
mod gate;
mod graphs;
pub mod hooks;
mod launch;
mod lock;
mod mspti;
mod pending;
mod place;
mod pool;
mod process;
mod records;
mod resolver;

pub mod runtime;
mod shim;
mod tally;
mod timing;
mod track;
mod walls;

pub use description::{Kind, Name};
pub use launch::{Launch, Outcome, launch_timed};
use shim::Shim;
pub use walls::{Walls, launch_walls};

use std::time::Duration;

/// Waits until all launches so far have their slices in the trace, for at most `patience`. Returns true if they have. It does not wait for streams, so
/// synchronize them first. It does not wait for MSPTI's records either.
pub fn flush(patience: Duration) -> bool {
    let devices = process::existing_shim().into_iter().flat_map(Shim::devices);
    let flushed = devices.map(|device| device.flush(patience)); // all of them, even if one is late
    flushed.filter(|flushed| !flushed).count() == 0
}
