//! A simulated Ascend runtime: `libascendcl.so` for machines without an NPU, strict where the vendor's is. README.md says what it does, what it does not,
//! and how it is configured.
//!
//! **Data flow.** An exported function (`exports/`) checks its pointers and calls safe code. The `runtime` owns everything that programs hold handles of,
//! and looks it up. A launch becomes a task of a stream. The stream's executor thread takes its time for it, and stamps events with the clock of its
//! device. It records in the truth when the task really began and ended. On a capturing stream the task goes into a graph instead, and runs when that
//! is replayed.
//!
//! **Guarantees.** A handle that is stale or invented is an error code. No panic leaves an exported function. Nothing starts before the first call.
#![expect(
    unsafe_code,
    reason = "exports C functions, and works on the memory that programs hand in"
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

/// A result, or the error code that the caller gets.
type Outcome<T = ()> = Result<T, ascend_sys::types::aclError>;

/// Returns the outcome that has this code.
fn outcome(code: ascend_sys::types::aclError) -> Outcome {
    fail_if(code != ascend_sys::codes::ACL_SUCCESS, code)
}

/// Fails with this code if the condition holds.
fn fail_if(condition: bool, code: ascend_sys::types::aclError) -> Outcome {
    if condition { Err(code) } else { Ok(()) }
}

/// Ends the process: a test with a misspelt fault, or with a call that would break the vendor's libraries, must not pass.
#[expect(clippy::print_stderr, reason = "nothing else could report it")]
fn refuse(why: &str) -> ! {
    eprintln!("ascend-sim: {why}");
    std::process::abort()
}
