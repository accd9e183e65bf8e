//! The connection between the launcher and one child: the child's standard input is a socket.
//!
//! The child tells its state; the launcher says stop. No name in the file system, nothing to inherit by accident, and either side
//! learns at once when the other dies.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;

use crate::protocol::{self, Command, Status};

/// The child's end.
#[derive(Debug)]
pub(crate) struct Control {
    launcher: Mutex<UnixStream>,
}

impl Control {
    /// Takes over standard input, which the launcher made a socket.
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

    /// Tells the launcher; if it is gone, the watch is already ending this process.
    pub(crate) fn tell(&self, status: Status) {
        if let Ok(mut launcher) = self.launcher.lock() {
            let _ = protocol::send(&mut *launcher, &status);
        }
    }

    /// Starts a thread that calls `stop` once, when the launcher says so or is gone.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be duplicated or the thread not started.
    pub(crate) fn on_stop(&self, stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let launcher = self.launcher.lock();
        let launcher = launcher.map_err(|_| io::Error::other("control socket poisoned"))?;
        let mut commands = launcher.try_clone()?;
        thread::Builder::new()
            .name("control".into())
            .spawn(move || match protocol::receive::<Command>(&mut commands) {
                Ok(Some(Command::Stop) | None) | Err(_) => stop(),
            })?;
        Ok(())
    }
}
