//! `sa-profile snapshot`: copies a run aside while it records on.

use crate::error::Error;
use crate::print;
use crate::words::say;
use std::path::PathBuf;
use std::process::ExitCode;

/// Copies what a live run has recorded until now, for `trace-merge`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// New directory for the copy; on the same file system it takes little space
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let report = trace_merge::snapshot(&arguments.directory, &arguments.out)?;
    report.unreadable.iter().for_each(|why| say(why));
    print(&format!(
        "{}: {} fragments, {} bytes ({} segments linked, {} copied)\n",
        arguments.out.display(),
        report.fragments,
        report.bytes,
        report.linked,
        report.copied
    ))?;
    Ok(ExitCode::SUCCESS)
}
