//! `trace-merge`: fragments of many processes → one Chrome trace.

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::descriptors::raise_limit();
    command::cli::run()
}
