//! `trace-merge`: fragments of many processes → one Chrome trace.

mod arguments;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
