//! The library as C and C++ programs use it: compiled here, run, and what they recorded read from the merged trace.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is skipped says so"
)]

mod header;
mod install;
mod launches;
mod library;
mod recording;
mod single_thread;
mod stage;
