//! Kills a worker in the middle of a step, and nowhere else.
//!
//! A kill upon "step started" could come when the step is over already. So the worker is stopped first; what it said last, once it
//! stands still, tells whether it is inside a step. If not it goes on until the next one.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use sa_recorder::instant;

use crate::protocol::{self, Status};

/// How far into a step the worker is stopped: its batch and kernels have begun by then.
const INTO_STEP: Duration = Duration::from_millis(4);

/// A worker that was killed inside a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Killed {
    pub(super) worker: String,
    pub(super) pid: i32,
    pub(super) step: u64,
}

/// Reads the worker's marks and kills it in the middle of the first step after `ripe` says so; `None` if the worker ends first.
///
/// # Errors
///
/// If a signal or the wait for its effect fails.
pub(super) fn in_mid_step(
    worker: &str,
    pid: Pid,
    mut messages: UnixStream,
    ripe: impl Fn() -> bool,
) -> io::Result<Option<Killed>> {
    while let Ok(Some(status)) = protocol::receive::<Status>(&mut messages) {
        let Status::StepStarted(step) = status else {
            continue;
        };
        if !ripe() {
            continue;
        }
        thread::sleep(INTO_STEP);
        if !stop(pid)? {
            return Ok(None);
        }
        if last_message(&mut messages, status)? == Status::StepStarted(step) {
            instant!(
                "launcher",
                "worker.kill",
                worker = worker,
                worker_pid = pid.as_raw(),
                step = step
            );
            kill(pid, Signal::SIGKILL)?;
            return Ok(Some(Killed {
                worker: worker.to_owned(),
                pid: pid.as_raw(),
                step,
            }));
        }
        kill(pid, Signal::SIGCONT)?;
    }
    Ok(None)
}

/// Stops the process and waits until it stands still; false if it has ended.
fn stop(pid: Pid) -> io::Result<bool> {
    kill(pid, Signal::SIGSTOP)?;
    // Without reaping it: its exit status belongs to whoever started it.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    let state = waitid(Id::Pid(pid), flags)?;
    Ok(matches!(state, WaitStatus::Stopped(..)))
}

/// The last of the messages that lie in the socket; `known` if there is none.
fn last_message(messages: &mut UnixStream, known: Status) -> io::Result<Status> {
    messages.set_nonblocking(true)?;
    let mut last = known;
    // Ends with "would block": the process stands still, and it sends each message at once.
    while let Ok(Some(status)) = protocol::receive(messages) {
        last = status;
    }
    messages.set_nonblocking(false)?;
    Ok(last)
}
