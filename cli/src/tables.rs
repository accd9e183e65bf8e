//! `sa-profile tables`: writes the tables of a recorded run as Parquet.

use crate::directory;
use crate::error::Error;
use crate::words::say;
use std::process::ExitCode;
use trace_merge::Progress;
use trace_tables::command::TablesArgs;

/// Writes the tables of a run as Parquet; the run may still be live.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    tables: TablesArgs,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let tables = arguments.tables.clone().or_default(directory::default)?;
    say(&tables.write(&Progress::default())?);
    Ok(ExitCode::SUCCESS)
}
