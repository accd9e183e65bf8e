//! `sa-profile diff`: sets two recorded runs side by side.

use crate::directory;
use crate::error::Error;
use crate::words::say;
use std::process::ExitCode;
use trace_merge::Progress;
use trace_report::command::DiffArgs;

/// Sets two recorded runs side by side: what became slower, and why.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    diff: DiffArgs,
}

/// Carries the command out; exits with 1 if a condition of `--fail-if` holds.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let comparison = arguments
        .diff
        .compare(directory::inputs, &Progress::default())?;
    crate::print_data(&comparison.text)?;
    for failure in &comparison.failures {
        say(&format!("failed: {failure}"));
    }
    Ok(match comparison.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}
