//! `sa-profile doctor`: checks if recording would work here, and what it would lack. Prints one line for each check.

mod clock;
mod engine_plugins;
mod finding;
mod limits;
mod parts;
mod process;
mod profilers;
mod recorded;
mod storage;
mod torch_npu;
mod variables;

use crate::error::Error;
use crate::{directory, print_data};
use finding::{Finding, Status};
use sa_format::DEFAULT_DIRECTORY;
use sa_format::visible_json;
use sa_recorder::{Config, RunPaths};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  sa-profile doctor                  would recording into profile_out work?
  sa-profile doctor /mnt/run         the same for another directory, and the newest run in it

Exit status: 0 recording would work, 1 it would not, 2 bad usage.";

/// Checks whether recording would work here, and says what is missing.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub(crate) struct Arguments {
    /// Run directory [default: SA_PROFILE_DIR, else ./profile_out, and the newest run there]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let findings = examine(arguments.dir.clone());
    let text = match arguments.json {
        true => {
            let text = serde_json::to_string_pretty(&findings).expect("texts become JSON");
            visible_json(&text).into_owned() + "\n"
        }
        false => findings
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect(),
    };
    match print_data(&text) {
        Ok(()) | Err(Error::BrokenPipe) => {}
        Err(error) => return Err(error),
    }
    let failed = findings
        .iter()
        .any(|finding| finding.status == Status::Fail);
    Ok(ExitCode::from(u8::from(failed)))
}

fn examine(directory: Option<PathBuf>) -> Vec<Finding> {
    let config = Config::from_lookup(|name| std::env::var_os(name));
    let is_named = directory.is_some();
    let paths = match (directory, &config) {
        (Some(directory), _) => RunPaths::in_directory(directory),
        (None, Some(config)) => config.paths.clone(),
        (None, None) => RunPaths::in_directory(PathBuf::from(DEFAULT_DIRECTORY)),
    };
    let run = match directory::newest_in(&paths.directory, is_named) {
        Some(run) if run != paths.directory => RunPaths::in_directory(run),
        _ => paths.clone(),
    };
    let mut findings = variables::examine(config.as_ref());
    findings.extend(storage::examine(&paths.directory, bound(config.as_ref())));
    findings.extend(limits::examine());
    findings.extend(clock::examine());
    findings.extend(process::examine());
    findings.extend(profilers::examine(std::env::vars_os()));
    findings.extend(parts::examine());
    findings.extend(recorded::examine(&run));
    findings
}

/// Returns the disk space in bytes that a process may use: as configured, or the default.
fn bound(config: Option<&Config>) -> u64 {
    let by_default = || Config::from_lookup(|name| (name == "SA_PROFILE_DIR").then(|| "x".into()));
    config
        .cloned()
        .or_else(by_default)
        .map_or(0, |config| config.max_bytes)
}
