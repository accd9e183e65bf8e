//! Compiles C and C++ programs that use the library, runs them, and checks the merged trace of what they recorded.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod header;
mod install;
mod launches;
mod library;
mod recording;
mod single_thread;
mod stage;
