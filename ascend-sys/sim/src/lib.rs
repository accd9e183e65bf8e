//! A simulated Ascend runtime: `libascendcl.so` for machines without an NPU. It is as strict as the vendor's runtime. README.md describes its features, limits and
//! settings.
//!
//! **Data flow.** An exported function (`exports/`) checks its pointers and calls safe code. The `runtime` owns all objects for which programs have handles. A
//! launch becomes a task of a stream. The stream's executor thread spends the task's duration and gives events timestamps from the device's clock. It records in the
//! truth when the task really began and ended. On a capturing stream, the task is added to a graph instead, and runs when the graph is replayed.
//!
//! **Guarantees.** A stale or invented handle gives an error code. No panic leaves an exported function. No thread starts before the first call.
#![expect(
    unsafe_code,
    reason = "exports C functions, and accesses memory that programs pass to them"
)]

mod capture;
mod clock;
mod config;
mod context;
mod device;
mod effect;
mod event;
mod exports;
mod faults;
mod graph;
mod handle;
mod hccl;
pub mod hide;
mod kernel;
mod listeners;
mod memory;
mod mspti;
mod runtime;
mod stream;
mod truth;
mod wait;
mod work;

/// A result, or an error code for the caller.
type Outcome<T = ()> = Result<T, ascend_sys::types::aclError>;

/// Converts an error code to an outcome.
fn outcome(code: ascend_sys::types::aclError) -> Outcome {
    fail_if(code != ascend_sys::codes::ACL_SUCCESS, code)
}

/// Fails with this code if the condition holds.
fn fail_if(condition: bool, code: ascend_sys::types::aclError) -> Outcome {
    if condition { Err(code) } else { Ok(()) }
}

/// Ends the process. A test with a misspelt setting, or with a call that would break the vendor's libraries, must not pass.
#[expect(clippy::print_stderr, reason = "nothing else could report it")]
fn refuse(why: &str) -> ! {
    eprintln!("ascend-sim: {why}");
    std::process::abort()
}
