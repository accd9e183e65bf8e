//! `sa-profile snapshot`: copies a run while it continues to record.

use crate::directory;
use crate::error::Error;
use crate::print;
use crate::words::{plural, say};
use std::path::PathBuf;
use std::process::ExitCode;

/// Copies what a live run has recorded until now, for `trace-merge`.
#[derive(clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Arguments {
    /// Run directory [default: the newest live run]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// New directory for the copy; on the same file system it takes little space
    #[arg(value_name = "OUT", required = true)]
    out: PathBuf,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = directory::live(arguments.directory.as_deref())?;
    let report = trace_merge::snapshot(&directory, &arguments.out)?;
    report.unreadable.iter().for_each(|why| say(why));
    print(&format!(
        "{}: {}, {} bytes ({} linked, {} copied)\n",
        arguments.out.display(),
        plural(report.fragments as u64, "fragment"),
        report.bytes,
        plural(report.linked as u64, "segment"),
        report.copied
    ))?;
    Ok(ExitCode::SUCCESS)
}
