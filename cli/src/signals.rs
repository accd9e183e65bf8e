//! Signals to this process, read one after the other instead of handled: blocked, so that a handler never runs and nothing is inherited.

use crate::error::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// What the kernel puts into a signal's code when it sends it itself, as for Ctrl-C in a terminal (`SI_KERNEL`).
const FROM_KERNEL: i32 = 0x80;

/// The signals that ask a program to end.
pub(crate) const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Which one.
    pub(crate) signal: Signal,
    /// The process that sent it; `None` for the kernel, which sends to the whole foreground group of a terminal.
    pub(crate) sender: Option<u32>,
}

/// The signals of this process; they are let through again when this is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    set: SigSet,
    before: SigSet,
    file: SignalFd,
}

impl Signals {
    /// Begins to collect these signals; call it before there are threads, which would get them too.
    pub(crate) fn collect(which: &[Signal]) -> io::Result<Signals> {
        let set = SigSet::from_iter(which.iter().copied());
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals { set, before, file })
    }

    /// Collects these signals for a command that cannot go on without.
    pub(crate) fn of_command(which: &[Signal]) -> Result<Signals, Error> {
        Signals::collect(which).map_err(|error| Error::Unusable(format!("signals: {error}")))
    }

    /// What was blocked before; a child inherits what is blocked.
    pub(crate) fn before(&self) -> &SigSet {
        &self.before
    }

    /// Does something with the signals let through, such as starting a process.
    pub(crate) fn let_through<T>(&self, action: impl FnOnce() -> T) -> T {
        let _ = self.before.thread_set_mask(); // cannot fail with a mask that was in force
        let done = action();
        let _ = self.set.thread_block();
        done
    }

    /// The next signal, waited for at most `patience`.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Option<Arrived> {
        let timeout = patience.map_or(PollTimeout::NONE, |patience| {
            PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX)
        });
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, timeout) {
            Ok(0) | Err(Errno::EINTR) => None,
            _ => self.taken(),
        }
    }

    /// Forgets what has arrived so far.
    pub(crate) fn discard(&self) {
        while self.taken().is_some() {}
    }

    fn taken(&self) -> Option<Arrived> {
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
        let _ = self.before.thread_set_mask(); // cannot fail with a mask that was in force
    }
}
