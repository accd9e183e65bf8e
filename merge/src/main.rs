//! `trace-merge`: fragments of many processes → one Chrome trace.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
