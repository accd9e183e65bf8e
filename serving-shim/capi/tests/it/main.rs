//! The library as C and C++ programs use it: compiled here, run, and what they recorded read from the merged trace.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod header;
mod install;
mod launches;
mod library;
mod recording;
mod single_thread;
mod stage;
