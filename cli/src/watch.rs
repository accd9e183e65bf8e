//! `sa-profile watch`: the figures of a run while it goes on, on a terminal.

mod screen;

use crate::error::Error;
use crate::signals::Signals;
use crate::{directory, print, print_data};
use nix::sys::signal::Signal;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trace_report::live::{LiveReader, LiveState};

/// How often the run is looked at, and how long it then rests at least, in times of what the look took.
const EVERY: Duration = Duration::from_secs(1);
const REST: u32 = 3;
/// Clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows how fast a run answers requests, and what its processes do, again each second until it is over.
///
/// Where the output is no terminal, each look is one line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// One look, at all that is there
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    directory: directory::RunDirectory,
}

/// Carries the command out.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.resolve()?;
    let signals = Signals::collect(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let signals = signals.map_err(|error| Error::Unusable(format!("signals: {error}")))?;
    let is_terminal = std::io::stdout().is_terminal();
    let mut reader = LiveReader::new(&directory);
    loop {
        let start = Instant::now();
        let found = reader.poll();
        let took = start.elapsed();
        if arguments.once && found.unread > 0 && found.bytes > 0 {
            continue;
        }
        let is_over = reader.is_over();
        if is_over {
            reader.finish();
        }
        let stats = reader.stats();
        if is_terminal || arguments.once {
            print_data(if is_terminal && !arguments.once {
                CLEAR
            } else {
                ""
            })?;
            print(&screen::text(&stats))?;
        } else {
            print(&screen::line(&stats))?;
        }
        if arguments.once || is_over && stats.state == LiveState::Ended {
            return Ok(ExitCode::SUCCESS);
        }
        if signals
            .next(Some(EVERY.saturating_sub(took).max(REST * took)))
            .is_some()
        {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
