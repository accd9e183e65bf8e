//! `sa-profile report`: says where the time of a recorded run went.

use crate::directory;
use crate::error::Error;
use crate::words::say;
use std::process::ExitCode;
use trace_merge::Progress;
use trace_report::command::{Answer, ReportArgs};

/// Says where the time of a recorded run went; the run may still be live.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    report: ReportArgs,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let report = arguments.report.clone().find_runs(directory::inputs)?;
    match report.answer(&Progress::default())? {
        Answer::Text(text) => crate::print_data(&text)?,
        Answer::Written(place) => say(&place),
    }
    Ok(ExitCode::SUCCESS)
}
