//! The recorder for C and C++: `libsa_profile` and its header, `include/sa_profile.h`.
//!
//! The header is the documentation that users read. cbindgen writes it from this source, and a test compares the two (`UPDATE_HEADER=1` writes it
//! anew).
//!
//! Every exported function does the same four things. It returns at once if the level is off. It takes pointers of any kind for what they are, null
//! ones included. It hands over to [`sa_recorder`]. It lets neither a panic nor a changed `errno` out.
#![expect(unsafe_code, reason = "exported names, and pointers that come from C")]
#![expect(
    clippy::missing_safety_doc,
    reason = "one contract for every pointer, in the header's chapter Ownership: null, or good for reading until the call returns"
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
mod call;
mod event;
mod handle;
mod known;
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
