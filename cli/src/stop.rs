//! `sa-profile stop`: switches recording off.

use crate::control::Wish;
use crate::error::Error;
use crate::{directory, obey};
use sa_format::control::SwitchCause;
use std::process::ExitCode;

/// Switches recording off in every process; open spans are kept, and marked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    directory: directory::RunDirectory,
    #[command(flatten)]
    wait: obey::Patience,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let wish = Wish::new(SwitchCause::Stop, Some(Vec::new()));
    obey::carry_out(&directory, wish, "record nothing", &arguments.wait)
}
