//! One child process, seen from the launcher.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{self, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use tokio::task::spawn_blocking;

use super::environment;
use crate::child::{Child, Role};
use crate::protocol::{self, Command, Status};

/// How long a child may take to come up.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a child may take to end after it was told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// A running child; killed when dropped before it was stopped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: process::Child,
    control: UnixStream,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts this program again as `role`, with a control socket as its standard input.
    ///
    /// Must be called on the main thread: the kernel ties the child's life to the thread that starts it.
    ///
    /// # Errors
    ///
    /// If the socket or the process cannot be made.
    pub(super) fn start(role: Role, engine: &Path) -> io::Result<Process> {
        let (control, theirs) = UnixStream::pair()?;
        let name = role.name();
        let launcher = Pid::this().as_raw();
        let environment = environment::of(&role)?;
        let arguments = Child {
            launcher,
            role,
            engine: engine.to_owned(),
        }
        .to_args()?;
        let mut command = process::Command::new(std::env::current_exe()?);
        command.envs(environment);
        let child = command
            .args(arguments)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // Ctrl-C in a terminal goes to the launcher alone, which stops the children in order.
            .process_group(0)
            .spawn()?;
        Ok(Process {
            name,
            child,
            control,
            ended: None,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn pid(&self) -> Pid {
        // Linux pids are below 2^22.
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Waits until the child says that it serves; the API process says at which port.
    ///
    /// The read itself goes on when the wait is given up; it ends with the child.
    ///
    /// # Errors
    ///
    /// If it ends first or does not say so in time.
    pub(super) async fn ready(&self) -> io::Result<Option<u16>> {
        let messages = self.messages()?;
        let status = spawn_blocking(move || first_status(messages)).await?;
        let why = match status {
            Ok(Some(Status::Ready { port })) => return Ok(port),
            Ok(_) => "ended before it was ready".to_owned(),
            Err(error) => format!("did not come up: {error}"),
        };
        Err(io::Error::other(format!("{} {why}", self.name)))
    }

    /// A second handle on the control socket, to read the child's messages from.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be duplicated.
    pub(super) fn messages(&self) -> io::Result<UnixStream> {
        self.control.try_clone()
    }

    /// Tells the child to stop and waits for its end; kills it if that takes too long. Says what was wrong with the end.
    pub(super) fn stop(&mut self) -> Option<String> {
        let _ = protocol::send(&mut self.control, &Command::Stop);
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.ended.is_none() && Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(POLL),
                Ok(ended) => self.ended = ended,
                Err(error) => return Some(format!("{}: {error}", self.name)),
            }
        }
        match self.ended {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("{} ended by {}", self.name, describe(status))),
            None => {
                self.kill();
                Some(format!(
                    "{} did not stop within {} s and was killed",
                    self.name,
                    STOP_TIMEOUT.as_secs()
                ))
            }
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
        }
    }
}

fn first_status(mut messages: UnixStream) -> io::Result<Option<Status>> {
    messages.set_read_timeout(Some(START_TIMEOUT))?;
    let status = protocol::receive(&mut messages);
    messages.set_read_timeout(None)?;
    status
}

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", status.code().unwrap_or_default()),
    }
}
