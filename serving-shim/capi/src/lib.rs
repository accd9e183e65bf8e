//! The recorder for C and C++: `libsa_profile` and its header, `include/sa_profile.h`.
//!
//! The header is the documentation for users. cbindgen generates it from this source, and a test compares the two (`UPDATE_HEADER=1` writes it again).
//!
//! Every exported function works in the same way. It returns at once if the level is off. It accepts null pointers. It calls [`sa_recorder`]. It lets neither a
//! panic nor a changed `errno` reach the caller.
#![expect(unsafe_code, reason = "exported names and pointers from C")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the header's paragraph Ownership has one contract for every pointer: null, or readable until the call returns"
)]
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::disallowed_macros
    )
)]

mod arg;
mod async_span;
mod cache;
mod call;
mod event;
mod handle;
mod launch;
mod level;
mod process;
mod run;
mod span;
mod text;

pub use arg::*;
pub use async_span::*;
pub use event::*;
pub use launch::*;
pub use level::*;
pub use process::*;
pub use run::*;
pub use span::*;
