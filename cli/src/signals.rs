//! Reads the signals of this process one by one. They are blocked instead of handled, so that no handler runs and no child inherits one.

use crate::error::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Signal code (`SI_KERNEL`) of signals that the kernel sends, as for Ctrl-C in a terminal.
const FROM_KERNEL: i32 = 0x80;

/// Signals that ask a program to end.
pub(crate) const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// A signal that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// The signal.
    pub(crate) signal: Signal,
    /// Process that sent it; `None` for the kernel, which sends to the whole foreground group of a terminal.
    pub(crate) sender: Option<u32>,
}

/// Signals of this process that are collected. Dropping it restores the signal mask.
#[derive(Debug)]
pub(crate) struct Signals {
    set: SigSet,
    original_mask: SigSet,
    file: SignalFd,
}

impl Signals {
    /// Begins to collect these signals. It must be called before there are threads, because these could get the signals.
    pub(crate) fn collect(which: &[Signal]) -> io::Result<Signals> {
        let set = SigSet::from_iter(which.iter().copied());
        let original_mask = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals {
            set,
            original_mask,
            file,
        })
    }

    /// Collects these signals, or returns the error of a command that cannot continue without them.
    pub(crate) fn for_command(which: &[Signal]) -> Result<Signals, Error> {
        Signals::collect(which).map_err(|error| Error::Unusable(format!("signals: {error}")))
    }

    /// Returns the original signal mask, for children, which inherit the current one.
    pub(crate) fn original_mask(&self) -> &SigSet {
        &self.original_mask
    }

    /// Runs an action with the original signal mask, for example to start a process.
    pub(crate) fn with_original_mask<T>(&self, action: impl FnOnce() -> T) -> T {
        let _ = self.original_mask.thread_set_mask(); // cannot fail with a mask that was in force
        let done = action();
        let _ = self.set.thread_block();
        done
    }

    /// Returns the next signal. Waits for it at most for `patience`.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Option<Arrived> {
        let timeout = patience.map_or(PollTimeout::NONE, |patience| {
            PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX)
        });
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, timeout) {
            Ok(0) | Err(Errno::EINTR) => None,
            _ => self.read_one(),
        }
    }

    /// Discards the signals that have arrived so far.
    pub(crate) fn discard(&self) {
        while self.read_one().is_some() {}
    }

    fn read_one(&self) -> Option<Arrived> {
        let info = self.file.read_signal().ok()??;
        let number = i32::try_from(info.ssi_signo).ok()?;
        Some(Arrived {
            signal: Signal::try_from(number).ok()?,
            sender: (info.ssi_code != FROM_KERNEL).then_some(info.ssi_pid),
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.discard();
        let _ = self.original_mask.thread_set_mask(); // cannot fail with a mask that was in force
    }
}
