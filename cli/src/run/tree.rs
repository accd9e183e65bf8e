//! Starts the command, passes signals on to it, and waits until it and all its descendants have ended.

use super::descendants::{Descendant, descendants, is_descendant};
use super::launch::launch;
use crate::signals::{Arrived, Signals};
use crate::words::{printable, say};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};
use trace_merge::Exit;

/// How long the processes that outlive the command may take to end before a message says that they are waited for.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum number of processes that the message names.
const NAMED: usize = 8;
/// Maximum number of processes whose exit status is stored.
const MOST_EXITS: usize = 1 << 20;

/// Signals that are passed on, and `SIGCHLD`.
const READ: [Signal; 10] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGTSTP,
    Signal::SIGCHLD,
];

/// How the command and its descendants ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code of the command, or 128 plus the signal that ended it. `None` if the system does not report it.
    pub(crate) code: Option<u8>,
    /// Exit status of each process that was waited for: the command, its orphans, and their orphans.
    pub(crate) exits: BTreeMap<i64, Exit>,
    /// Processes that are still running because the user stopped waiting for them.
    pub(crate) still_running: Vec<Descendant>,
}

/// A running command.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The command itself, until it has ended.
    main: Option<Pid>,
    code: Option<u8>,
    exits: BTreeMap<i64, Exit>,
    signals: Signals,
}

impl Tree {
    /// Starts a command with changes to the environment. This process becomes the parent of all orphans, so that it can wait for them.
    pub(crate) fn start(
        words: &[OsString],
        changes: Vec<(&'static str, Option<OsString>)>,
    ) -> io::Result<Tree> {
        set_child_subreaper(true)?;
        let signals = Signals::collect(&READ)?;
        let main = launch(words, changes, signals.original_mask())?;
        Ok(Tree {
            main: Some(main),
            code: None,
            exits: BTreeMap::new(),
            signals,
        })
    }

    /// Waits until the last process has ended, or until the user stops waiting for processes that outlive the command.
    pub(crate) fn wait(mut self) -> Ended {
        let mut announce_at = None;
        while self.reap() {
            let now = Instant::now();
            if self.main.is_none() && *announce_at.get_or_insert(now + GRACE) <= now {
                announce(&descendants());
                announce_at = Some(now + Duration::from_secs(60 * 60));
            }
            let patience = announce_at.map(|at| at.saturating_duration_since(now));
            let arrived = self.signals.next(patience);
            if arrived.is_some_and(|arrived| self.handle(arrived)) {
                return self.ended(descendants());
            }
        }
        self.ended(Vec::new())
    }

    fn ended(self, still_running: Vec<Descendant>) -> Ended {
        Ended {
            code: self.code,
            exits: self.exits,
            still_running,
        }
    }

    /// Records every process that has ended. Returns false when none is left.
    fn reap(&mut self) -> bool {
        loop {
            let (pid, code, exit) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => {
                    (pid, u8::try_from(code & 0xff).ok(), Exit::Code(code))
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    let code = u8::try_from(128 + signal as i32).ok();
                    (pid, code, Exit::Signal(signal.to_string()))
                }
                Ok(WaitStatus::StillAlive) => return true,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => return false,
            };
            if self.exits.len() < MOST_EXITS {
                self.exits.insert(pid.as_raw().into(), exit);
            }
            if self.main == Some(pid) {
                // Signals that came before the end of the command were meant for it, in particular the Ctrl-C that ended it.
                self.signals.discard();
                (self.main, self.code) = (None, code);
            }
        }
    }

    /// Handles a signal. Returns true if it ends the waiting.
    fn handle(&self, arrived: Arrived) -> bool {
        use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
        let signal = arrived.signal;
        if signal == SIGCHLD || arrived.sender.is_some_and(is_descendant) {
            return false; // a process that signals its whole group has already signaled the others
        }
        if let (Some(main), Some(_)) = (self.main, arrived.sender) {
            let _ = kill(main, signal); // it may have just ended
        }
        if signal == SIGTSTP {
            stop();
        }
        self.main.is_none() && matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT)
    }
}

/// Stops this process as if the signal had not been collected. The kernel ignores it if no shell could continue the process. `fg` or `bg` continues
/// here.
fn stop() {
    let set = SigSet::from_iter([Signal::SIGTSTP]);
    let _ = set.thread_unblock().and_then(|()| raise(Signal::SIGTSTP));
    let _ = set.thread_block();
}

fn announce(left: &[Descendant]) {
    if left.is_empty() {
        return;
    }
    let named = left.iter().take(NAMED);
    let mut names: Vec<String> = named
        .map(|process| format!("{} ({})", process.pid, printable(&process.name)))
        .collect();
    if left.len() > NAMED {
        names.push(format!("{} more", left.len() - NAMED));
    }
    say(&format!(
        "the command has ended; waiting for processes that it left running: pid {}. Ctrl-C ends the waiting and merges what is recorded",
        names.join(", ")
    ));
}
