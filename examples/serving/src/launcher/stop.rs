//! Ctrl-C and the termination signal. The first signal stops the run in order, and the second ends it at once.

use std::{io, process};

use nix::sys::signal::Signal;
use tokio::runtime::Runtime;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Receives the signals.
#[derive(Debug)]
pub(super) struct StopSignal(UnboundedReceiver<Signal>);

impl StopSignal {
    /// Waits for a signal.
    pub(super) async fn received(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// Starts watching for signals on `runtime`.
///
/// # Errors
///
/// If a handler cannot be installed.
pub(super) fn watch(runtime: &Runtime) -> io::Result<StopSignal> {
    let _context = runtime.enter();
    let interrupt = unix::signal(SignalKind::interrupt())?;
    let terminate = unix::signal(SignalKind::terminate())?;
    let (sender, receiver) = unbounded_channel();
    runtime.spawn(forward(interrupt, terminate, sender));
    Ok(StopSignal(receiver))
}

async fn forward(
    mut interrupt: unix::Signal,
    mut terminate: unix::Signal,
    sender: UnboundedSender<Signal>,
) {
    let mut is_first = true;
    loop {
        let signal = tokio::select! {
            _ = interrupt.recv() => Signal::SIGINT,
            _ = terminate.recv() => Signal::SIGTERM,
        };
        if !is_first {
            // The kernel kills the children when this process ends.
            process::exit(128 + signal as i32);
        }
        is_first = false;
        let _ = sender.send(signal);
    }
}
