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
//! device asks from time to time if the second event was reached. Then it reads both times, places them on the host's axis, and writes a slice
//! on the stream's row. The slice has `host_wall_us`, `device_wall_us` and a flow from the launch's span. No stream is ever waited for.
//!
//! **A slice** is the time between two events in a stream. If `host_limited` is true, the slice begins before the launch call
//! returned. The slice then includes time in which the device waited for the host, and is an upper bound. The argument `uncertainty_us` bounds the
//! error of the start.
//!
//! **Guarantees.** A time that cannot belong to its launch is rejected and counted, never moved into place. Nothing is put into a stream that is being captured,
//! and nothing asked of events while anything is. A failing runtime costs slices, never a launch: its outcome is the caller's, unchanged. The trace's
//! counter `launches` shows what became of all of them.
//!
//! **Which runtime.** `SA_PROFILE_DEVICE` chooses it: `auto` or `ascend` (the vendor's, if it is there), `sim`, `off`. Without a runtime, launches are
//! recorded on the host alone. `mspti` adds the vendor's records of kernels, including the ones inside replays, on separate rows. The error of their times has no known bound.
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
mod row;
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

/// Waits until the launches made so far have their slices, at most for `patience`. Returns true if they have. It does not wait for streams: call it after
/// waiting for these. Nor does it wait for MSPTI's records.
pub fn flush(patience: Duration) -> bool {
    let devices = process::existing_shim().into_iter().flat_map(Shim::devices);
    let flushed = devices.map(|device| device.flush(patience)); // all of them, even if one is late
    flushed.filter(|flushed| !flushed).count() == 0
}
