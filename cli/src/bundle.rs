//! `sa-profile bundle`: writes a run as one redacted file for an issue.

use crate::error::Error;
use crate::{directory, print};
use std::process::ExitCode;
use trace_merge::Progress;
use trace_report::command::BundleArgs;

/// Writes the bundle, and prints what it contains.
pub(crate) fn run(arguments: &BundleArgs) -> Result<ExitCode, Error> {
    let bundle = arguments.clone().find_runs(directory::inputs)?;
    print(&bundle.write(&Progress::default())?)?;
    Ok(ExitCode::SUCCESS)
}
