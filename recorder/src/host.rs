//! What other libraries of this workspace need of the process they live in, done as the recorder does it.

pub use crate::sys::cancel::Uncancelled;
pub use crate::sys::clock::anchor;
pub use crate::sys::memory::note_cut;
pub use crate::sys::sleep::sleep;
pub use crate::sys::thread::{Thread, park_timeout, spawn_quiet, tid};
pub use crate::sys::{is_privileged, variable};
pub use crate::sys::{random, run_after_fork, run_at_exit, warn_once};
