//! `sa-profile tables`: writes the tables of a recorded run as Parquet.

use crate::directory;
use crate::error::Error;
use crate::signals::Signals;
use crate::words::say;
use nix::sys::signal::Signal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use trace_merge::Progress;
use trace_tables::Unfinished;
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
    let unfinished = Unfinished::default();
    let is_stopped = remove_on_signal(&unfinished)?;
    let written = tables.write(&Progress::default(), &unfinished);
    while written.is_err() && is_stopped.load(Ordering::SeqCst) {
        thread::park(); // the other thread ends the process
    }
    say(&written?);
    Ok(ExitCode::SUCCESS)
}

/// A signal that ends this process has it remove the tables that are not whole. Whether one came.
fn remove_on_signal(unfinished: &Unfinished) -> Result<Arc<AtomicBool>, Error> {
    // Before other threads begin, so that none of them gets a signal.
    let signals = Signals::collect(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
        .map_err(|error| Error::Unusable(format!("signals: {error}")))?;
    let unfinished = unfinished.clone();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&is_stopped);
    thread::spawn(move || {
        let arrived = loop {
            if let Some(arrived) = signals.next(None) {
                break arrived;
            }
        };
        stopped.store(true, Ordering::SeqCst);
        unfinished.remove();
        std::process::exit(128 + arrived.signal as i32);
    });
    Ok(is_stopped)
}
