//! `sa-profile status`: shows which processes record, which levels, and how much so far.

pub(crate) mod run;
mod table;

use crate::error::Error;
use crate::{directory, print, print_data};
use run::Run;
use sa_format::visible_json;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use trace_merge::survey::SegmentCache;

/// Minimum interval of a watched status. For a large run it is longer, so that reading takes only a part of the time.
const EVERY: Duration = Duration::from_secs(1);
/// Clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the processes of the newest run, and what each recorded and lost.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// One line of JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Repeat every second until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    directory: directory::RunDirectory,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.newest()?;
    let clears = arguments.watch && !arguments.json && std::io::stdout().is_terminal();
    let mut cache = SegmentCache::default();
    loop {
        let start = Instant::now();
        let run = Run::read(&directory, &mut cache)?;
        if arguments.json {
            print_data(&json(&run)?)?;
        } else {
            let text = table::text(&run);
            print_data(if clears { CLEAR } else { "" })?;
            print(&text)?;
        }
        if !arguments.watch {
            return Ok(ExitCode::SUCCESS);
        }
        if !arguments.json && !clears {
            print("\n")?;
        }
        thread::sleep(EVERY.max(4 * start.elapsed()));
    }
}

fn json(run: &Run) -> Result<String, Error> {
    let line = serde_json::to_string(run).map_err(|error| Error::stdout(error.into()))?;
    Ok(visible_json(&line).into_owned() + "\n")
}
