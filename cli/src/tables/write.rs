//! `sa-profile tables` in a build that supports it.

use crate::directory;
use crate::error::Error;
use crate::signals::{ENDING, Signals};
use crate::words::say;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use trace_merge::{Options, Progress};
use trace_tables::command::TablesArgs;
use trace_tables::{TablesOptions, Unfinished, write_tables};

/// Writes the tables of a run as Parquet; the run may still be live.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    tables: TablesArgs,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let tables = arguments.tables.clone().find_runs(directory::inputs)?;
    let unfinished = Unfinished::default();
    let is_stopped = remove_on_signal(&unfinished)?;
    let written = tables.write(&Progress::default(), &unfinished);
    while written.is_err() && is_stopped.load(Ordering::SeqCst) {
        thread::park(); // the other thread ends the process
    }
    say(&written?);
    Ok(ExitCode::SUCCESS)
}

/// Writes the tables of a run into a new folder.
pub(crate) fn write_new(options: &Options, to: &Path) -> Result<(), Error> {
    let tables = TablesOptions {
        to: to.to_owned(),
        ..TablesOptions::default()
    };
    write_tables(options, &tables, &Progress::default())?;
    Ok(())
}

/// Removes incomplete tables when a signal ends this process. The returned flag is set when a signal arrived.
fn remove_on_signal(unfinished: &Unfinished) -> Result<Arc<AtomicBool>, Error> {
    // This comes before other threads are created, so that none of them gets a signal.
    let signals = Signals::for_command(&ENDING)?;
    let unfinished = unfinished.clone();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&is_stopped);
    crate::spawn(move || {
        let arrived = loop {
            if let Some(arrived) = signals.next(None) {
                break arrived;
            }
        };
        stopped.store(true, Ordering::SeqCst);
        unfinished.remove();
        std::process::exit(128 + arrived.signal as i32);
    })?;
    Ok(is_stopped)
}
