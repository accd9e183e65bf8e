//! `libsa_profile_preload.so`: loaded with `LD_PRELOAD`, it records the NPU calls of an unmodified process.
//!
//! ```text
//! LD_PRELOAD=/path/libsa_profile_preload.so SA_PROFILE_DIR=./profile_out python serve.py
//! sa-profile run --preload -- python serve.py
//! ```
//!
//! **Data flow.** [`hooks`] exports wrappers under the names of the vendor's functions. A wrapper finds the real function once (`real`), calls it exactly
//! once with the caller's arguments, and returns its result and `errno` unchanged. Before and after that call it reports the launch to `serving-shim`
//! (through `observe`). The module `call` defines the order of these steps, `names` resolves kernel names, and `annotation` handles the ranges that a
//! program marks through mstx.
//!
//! **Guarantees to the host.** Loading the library does nothing. A process that never calls an NPU function never notices it: it creates no thread, file or
//! variable. While recording is off, a call costs one additional load. A failure of ours, even a panic, never reaches the host: its call proceeds as if the
//! library were not there.
//!
//! **Limits.** It cannot see calls inside a library that is linked with `-Bsymbolic`. README.md lists what else it cannot see.
#![expect(
    unsafe_code,
    reason = "replaces C functions and finds the real ones through the dynamic linker"
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
mod real;
mod task;
mod thread;
mod traffic;
mod visibility;
mod wrapper;
