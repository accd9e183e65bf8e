//! The connection between the launcher and one child: the child's standard input is a socket.
//!
//! The child reports its status, and the launcher sends the stop command. The socket has no name in the file system, no other process inherits it by accident, and either
//! side notices at once when the other dies.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;

use crate::protocol::{self, Command, Status};

/// The child's end of the connection.
#[derive(Debug)]
pub(crate) struct Control {
    launcher: Mutex<UnixStream>,
}

impl Control {
    /// Opens the connection on standard input, which the launcher has set to a socket.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be duplicated.
    pub(crate) fn from_stdin() -> io::Result<Control> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Control {
            launcher: Mutex::new(socket.into()),
        })
    }

    /// Reports a status to the launcher. Errors are ignored: if the launcher is gone, the control thread is already ending this process.
    pub(crate) fn report(&self, status: Status) {
        if let Ok(mut launcher) = self.launcher.lock() {
            let _ = protocol::send(&mut *launcher, &status);
        }
    }

    /// Starts a thread that calls `stop` once, on the launcher's stop command or when the launcher is gone.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be duplicated or the thread cannot be started.
    pub(crate) fn on_stop(&self, stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let locked = self.launcher.lock();
        let launcher = locked.map_err(|_| io::Error::other("control socket poisoned"))?;
        let mut commands = launcher.try_clone()?;
        thread::Builder::new()
            .name("control".into())
            .spawn(move || match protocol::receive::<Command>(&mut commands) {
                Ok(Some(Command::Stop) | None) | Err(_) => stop(),
            })?;
        Ok(())
    }
}
