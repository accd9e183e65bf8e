//! `trace-merge`: fragments of many processes → one Chrome trace.

mod command;

use std::process::ExitCode;
use trace_merge::OrExit;

#[global_allocator]
static MEMORY: OrExit = OrExit("trace-merge");

fn main() -> ExitCode {
    command::process_limits::raise_descriptors();
    command::cli::run()
}
