//! `trace-merge`: fragments of many processes → one Chrome trace.

mod arguments;
mod cli;
mod descriptors;

use std::process::ExitCode;

fn main() -> ExitCode {
    descriptors::raise_limit();
    cli::run()
}
