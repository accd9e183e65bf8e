//! Tests of the demo with real processes, each in its own directory, and of their traces.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

mod harness;
mod kill;
mod perfetto;
mod run;
mod stop;
mod verdicts;
