//! The demo from the outside: real process trees in directories of their own, and the traces they leave.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that skips says so")]

mod harness;
mod kill;
mod perfetto;
mod run;
mod stop;
mod verdicts;
