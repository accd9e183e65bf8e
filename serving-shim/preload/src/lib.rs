//! `libsa_profile_preload.so`: loaded by `LD_PRELOAD`, it records what an unmodified process asks of its NPUs.
//!
//! ```text
//! LD_PRELOAD=/path/libsa_profile_preload.so SA_PROFILE_DIR=./profile_out python serve.py
//! sa-profile run --preload -- python serve.py
//! ```
//!
//! **Data flow.** [`hooks`] exports the names of the vendor's functions. Each finds the real one once (`real`), calls it exactly once with the
//! arguments it was given, and hands back what it returned, `errno` included. Around that call it reports to the timing (`serving-shim`, through
//! `observe`) what was launched. The module `call` has the order of these steps, `names` the kernels' names, and `annotation` the ranges that a
//! program marks through mstx.
//!
//! **What it promises its host.** Loading it does nothing. A process that never calls an NPU function never notices it: no thread, no file, no variable. With recording off a call costs one
//! load more. A failure of ours, a panic included, never reaches the host: what it asked for is done as if we were not there.
//!
//! **What it cannot see.** Calls inside a library that is linked `-Bsymbolic`; README.md has the list.
#![expect(
    unsafe_code,
    reason = "stands in the place of C functions and finds the real ones through the dynamic linker"
)]
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::disallowed_macros
    )
)]

mod annotation;
mod call;
pub mod dlsym;
pub mod hooks;
mod kernel_name;
mod names;
mod observe;
mod reach;
mod real;
mod task;
mod thread;
mod traffic;
mod wrapper;
