//! `sa-profile report` and `sa-profile diff`: show where the time of a recorded run went, and what became slower.

use crate::error::Error;
use crate::words::say;
use crate::{directory, print_data};
use std::process::ExitCode;
use trace_merge::Progress;
use trace_report::command::{Answer, DiffArgs, ReportArgs};

/// Reports on a run.
pub(crate) fn run(arguments: &ReportArgs) -> Result<ExitCode, Error> {
    let report = arguments.clone().find_runs(directory::inputs)?;
    match report.answer(&Progress::default())? {
        Answer::Text(text) => print_data(&text)?,
        Answer::Written(place) => say(&place),
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares two runs; exits with 1 if a condition of `--fail-if` holds.
pub(crate) fn diff(arguments: &DiffArgs) -> Result<ExitCode, Error> {
    let comparison = arguments.compare(directory::inputs, &Progress::default())?;
    print_data(&comparison.text)?;
    for failure in &comparison.failures {
        say(&format!("failed: {failure}"));
    }
    Ok(ExitCode::from(u8::from(!comparison.failures.is_empty())))
}
