//! The command and everything that descends from it: started, led by signals, and waited for to the last process.

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

/// How long the processes of a command that has ended may take before anybody is told that they are waited for.
const GRACE: Duration = Duration::from_secs(1);
/// Most processes that are named.
const NAMED: usize = 8;
/// Most processes of which it is kept how they ended.
const MOST_EXITS: usize = 1 << 20;

/// What is passed on, and the news of children.
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

/// How the tree ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The command's exit code, 128 + its signal if one ended it; `None` where the system keeps it to itself.
    pub(crate) code: Option<u8>,
    /// How each process ended that was waited for: the command, its orphans, and theirs.
    pub(crate) exits: BTreeMap<i64, Exit>,
    /// Processes that go on, because the user would not wait for them.
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
    /// Starts a command in this environment with changes. Orphans of it become children of this process, so that none is lost from sight.
    pub(crate) fn start(
        words: &[OsString],
        changes: Vec<(&'static str, Option<OsString>)>,
    ) -> io::Result<Tree> {
        set_child_subreaper(true)?;
        let signals = Signals::collect(&READ)?;
        let main = launch(words, changes, signals.before())?;
        Ok(Tree {
            main: Some(main),
            code: None,
            exits: BTreeMap::new(),
            signals,
        })
    }

    /// Waits until the last process has ended, or the user would not wait for those that outlive the command.
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
            if arrived.is_some_and(|arrived| self.obey(arrived)) {
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

    /// Takes note of every process that has ended; false when none is left.
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
                // What came before its end was meant for it, above all the Ctrl-C that ended it.
                self.signals.discard();
                (self.main, self.code) = (None, code);
            }
        }
    }

    /// Does what a signal asks for; true if it ends the waiting.
    fn obey(&self, arrived: Arrived) -> bool {
        use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
        let signal = arrived.signal;
        if signal == SIGCHLD || arrived.sender.is_some_and(is_descendant) {
            return false; // a process that signals its whole group has reached the others by itself
        }
        if let (Some(main), Some(_)) = (self.main, arrived.sender) {
            let _ = kill(main, signal); // it may have ended this moment
        }
        if signal == SIGTSTP {
            stop();
        }
        self.main.is_none() && matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT)
    }
}

/// Stops as if the signal had not been collected: not at all where no shell could let us go on. A shell's `fg` or `bg` goes on from here.
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
        "the command has ended, waiting for what it left running: pid {}. Ctrl-C ends the waiting and merges what is recorded",
        names.join(", ")
    ));
}
