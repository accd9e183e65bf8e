//! Kills a worker, always in the middle of a step.
//!
//! When the message "step started" arrives, the step may already be over. So the worker is stopped first. Once it has stopped, its last
//! message shows if it is inside a step. If not, it continues until the next step.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use sa_recorder::instant;

use crate::protocol::{self, Status};

/// Time from the start of a step until the worker is stopped. By then its batch and kernels have begun.
const INTO_STEP: Duration = Duration::from_millis(4);

/// A worker that was killed inside a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Killed {
    pub(super) worker: String,
    pub(super) pid: i32,
    pub(super) step: u64,
}

/// Reads the worker's messages and kills it in the middle of the first step after `is_time` returns true. Returns `None` if the worker ends first.
///
/// # Errors
///
/// If a signal or the wait for its effect fails.
pub(super) fn in_mid_step(
    worker: &str,
    pid: Pid,
    mut messages: UnixStream,
    is_time: impl Fn() -> bool,
) -> io::Result<Option<Killed>> {
    while let Ok(Some(status)) = protocol::receive::<Status>(&mut messages) {
        let Status::StepStarted(step) = status else {
            continue;
        };
        if !is_time() {
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

/// Stops the process and waits until it has stopped. Returns false if it has ended.
fn stop(pid: Pid) -> io::Result<bool> {
    kill(pid, Signal::SIGSTOP)?;
    // WNOWAIT: do not reap the process, because `Process` waits for its exit status.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    let state = waitid(Id::Pid(pid), flags)?;
    Ok(matches!(state, WaitStatus::Stopped(..)))
}

/// Returns the last message in the socket, or `previous` if the socket is empty.
fn last_message(messages: &mut UnixStream, previous: Status) -> io::Result<Status> {
    messages.set_nonblocking(true)?;
    let mut last = previous;
    // Ends with "would block": the process has stopped, and it sends each message in one piece.
    while let Ok(Some(status)) = protocol::receive(messages) {
        last = status;
    }
    messages.set_nonblocking(false)?;
    Ok(last)
}
