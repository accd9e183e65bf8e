//! Tools that all benchmarks share.
//!
//! A recorder is one per process, so each of its cases runs in a [`Child`]. There [`rounds::run`] takes the floor (two clock reads) directly
//! before and after the case in the same threads, so that what else the machine does weighs on both, and the parent collects [`Rounds`].
//! [`cases::run`] is a whole benchmark of such cases.
//! [`process`] runs other programs, and says what they took.

pub mod cases;
pub mod clock;
pub mod process;
mod program;
pub mod quantile;
pub mod rounds;

pub use program::{Child, exit_code, figures, scratch, warm_page_cache, words};
pub use rounds::Rounds;
