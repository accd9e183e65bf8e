//! `sa-profile completions`: prints a script with which a shell completes the commands and options of this program.

use crate::error::Error;
use crate::print_data;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Prints a script with which a shell completes the commands and options.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the `completions` command: prints the completion script for a shell.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    generate(arguments.shell, &mut command, "sa-profile", &mut script);
    print_data(&repaired(&String::from_utf8_lossy(&script)))?;
    Ok(ExitCode::SUCCESS)
}

/// Repairs the bash script. In one of two places, clap_complete 4.6 takes the hyphen in the program's name for the beginning of a subcommand. Then
/// bash completes nothing after a subcommand.
fn repaired(script: &str) -> String {
    script.replace("sa__subcmd__profile", "sa__profile")
}
