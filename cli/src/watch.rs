//! `sa-profile watch`: the figures of a run while it goes on, on a terminal.

mod screen;

use crate::error::Error;
use crate::pace::{EVERY, PollTimer, left};
use crate::signals::{ENDING, Signals};
use crate::{directory, print, print_data};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;
use trace_report::live::{LiveReader, LiveStats};

/// Clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows each second how fast a run answers requests, until it is over.
///
/// If the output is not a terminal, each update is one line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Show the current figures once and exit
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    directory: directory::RunDirectory,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    // With `--once`, signals end the process immediately, as usual.
    let signals = Signals::for_command(if arguments.once { &[] } else { &ENDING })?;
    let mut reader = LiveReader::new(&directory);
    let mut shown: Option<Instant> = None;
    loop {
        let timer = PollTimer::start();
        let found = reader.poll();
        if arguments.once && found.unread > 0 && found.bytes > 0 {
            continue;
        }
        // Checked only once in each round: the last figures that are shown must be the final ones of an ended run.
        let is_last = arguments.once || reader.is_over();
        if is_last {
            reader.finish_now();
        }
        if is_last || shown.is_none_or(|shown| shown.elapsed() >= EVERY) {
            shown = Some(Instant::now());
            show(&reader.stats(), arguments.once)?;
        }
        if is_last {
            return Ok(ExitCode::SUCCESS);
        }
        let pause = timer.pause(left(&reader, &found));
        if signals.next(Some(pause)).is_some() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn show(stats: &LiveStats, is_once: bool) -> Result<(), Error> {
    match std::io::stdout().is_terminal() {
        _ if is_once => print(&screen::text(stats)),
        true => {
            print_data(CLEAR)?;
            print(&screen::text(stats))
        }
        false => print(&screen::line(stats)),
    }
}
