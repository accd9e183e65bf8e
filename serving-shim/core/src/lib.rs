//! Times kernel launches on the host and on the device, and puts the device's streams into the trace beside the threads that launched.
//!
//! ```no_run
//! # unsafe fn my_launch(_: *mut std::ffi::c_void) -> i32 { 0 }
//! # let stream = std::ptr::null_mut();
//! // The closure launches into `stream` and returns the runtime's code.
//! let code = serving_shim::launch_timed(stream, "matmul", || unsafe { my_launch(stream) });
//! ```
//!
//! **Data flow.** Around a launch an event goes into its stream on either side, and a span is written on the launching thread. A thread for each
//! device asks from time to time whether the second event was reached. Then it reads both times, places them on the host's axis, and writes a slice
//! on the stream's row. The slice has `host_wall_us`, `device_wall_us` and a flow from the launch's span. No stream is ever waited for.
//!
//! **What a slice means.** The time between two events in a stream. Where `host_limited` is true, the slice begins before the launch call
//! returned. The slice then holds time in which the device waited for the host, and is an upper bound. The argument `uncertainty_us` bounds how
//! far off the start can be.
//!
//! **Guarantees.** A time that cannot be that of its launch is rejected and counted, never moved into place. Nothing is put into a stream that is being captured,
//! and nothing asked of events while anything is. A failing runtime costs slices, never a launch: its outcome is the caller's, unchanged. The trace's
//! counter `launches` says what became of all of them.
//!
//! **Which runtime** `SA_PROFILE_DEVICE` says: `auto` (the vendor's, if it is there), `ascend`, `sim`, `off`. Without one launches are recorded on the host alone.
//! `mspti` adds the vendor's records of kernels: each of them inside a replay, and the device's own times of a launch in place of its pair's. `events` keeps from it.
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

mod ascend;
mod clock;
mod config;
mod counts;
mod description;
mod device;
mod gate;
mod graphs;
mod group;
pub mod hooks;
mod kernels;
mod launch;
mod mspti;
mod outcome;
mod pending;
mod place;
mod pool;
mod resolver;
mod row;
pub mod runtime;
mod shim;
mod track;
mod walls;

pub use description::{Kind, Name};
pub use launch::Launch;
pub use outcome::{Outcome, launch_timed};
pub use walls::{Walls, launch_walls};

use std::time::Duration;

/// Waits until the launches made so far have their slices, `patience` at most; whether they have. Waits for no stream itself: call it where these have been waited for. With MSPTI it also waits for records, which come within a second.
pub fn flush(patience: Duration) -> bool {
    shim::Shim::existing().is_none_or(|shim| {
        let flushed: Vec<bool> = shim
            .devices()
            .map(|device| device.flush(patience))
            .collect();
        flushed.into_iter().all(|one| one)
    })
}
