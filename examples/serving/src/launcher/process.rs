//! A child process of the launcher.

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

/// Maximum time that a child may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time that a child may take to end after the stop command.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// A running child. It is killed if it is dropped before it was stopped.
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
    /// Must be called on the main thread, because the kernel ties the child's life to the thread that starts it.
    ///
    /// # Errors
    ///
    /// If the socket or the process cannot be created.
    pub(super) fn start(role: Role, engine: &Path) -> io::Result<Process> {
        let (control, child_end) = UnixStream::pair()?;
        let name = role.name();
        let launcher = Pid::this().as_raw();
        let environment = environment::variables(&role)?;
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
            .stdin(Stdio::from(OwnedFd::from(child_end)))
            // Ctrl-C in a terminal only reaches the launcher, which stops the children in order.
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

    /// Waits until the child reports that it is ready. Returns the port of the API process.
    ///
    /// If this future is dropped, the read continues until the child ends.
    ///
    /// # Errors
    ///
    /// If the child ends first or is not ready in time.
    pub(super) async fn ready(&self) -> io::Result<Option<u16>> {
        let messages = self.messages()?;
        let status = spawn_blocking(move || first_status(messages)).await?;
        let why = match status {
            Ok(Some(Status::Ready { port })) => return Ok(port),
            Ok(_) => "ended before it was ready".to_owned(),
            Err(error) => format!("did not start: {error}"),
        };
        Err(io::Error::other(format!("{} {why}", self.name)))
    }

    /// Returns a second handle of the control socket, for reading the child's messages.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be duplicated.
    pub(super) fn messages(&self) -> io::Result<UnixStream> {
        self.control.try_clone()
    }

    /// Tells the child to stop and waits for its end. Kills it if that takes too long. Returns the problem if it did not end successfully.
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
