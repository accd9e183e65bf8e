//! Serves each client in its own thread, so that no client waits for another. The number of clients is limited.

use super::Site;
use super::connection::{Connection, Stage};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// Maximum number of clients. Others wait until one of these is served. A process may have 1,024 open files, and some are needed for other purposes.
const MOST: usize = 512;
/// Time without progress after which a client may be dropped for a new one, if there are too many.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval in ms at which an idle server checks if its site is over.
const CHECK_INTERVAL: u16 = 100;
/// Pause if there are too many clients, or if the system is out of sockets or threads.
const PAUSE: Duration = Duration::from_millis(10);
/// Stack size of a client's thread.
const STACK_BYTES: usize = 256 << 10;

/// A server of a site.
#[derive(Debug)]
pub(crate) struct Server<S> {
    listener: TcpListener,
    site: S,
    clients: Mutex<Vec<Arc<Connection>>>,
}

impl<S: Site> Server<S> {
    /// Creates a server. It accepts clients once it runs.
    pub(crate) fn new(listener: TcpListener, site: S) -> io::Result<Server<S>> {
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            site,
            clients: Mutex::default(),
        })
    }

    /// Serves clients until the site is over and all pending answers are sent.
    pub(crate) fn run(&self) {
        thread::scope(|scope| {
            while !self.site.is_over() {
                let mut files = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
                let has_new = poll(&mut files, PollTimeout::from(CHECK_INTERVAL)) != Ok(0);
                if has_new && !(self.has_room() && self.accept(scope).is_ok()) {
                    thread::sleep(PAUSE);
                }
            }
        });
    }

    fn accept<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        let client = Arc::new(Connection::new(stream));
        self.clients().push(Arc::clone(&client));
        let served = Arc::clone(&client);
        let serve = move || {
            let _ = served.serve(&self.site); // nobody is left to tell
            self.remove(&served);
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, serve);
        started.inspect_err(|_| self.remove(&client)).map(drop)
    }

    /// Returns true if there is room for another client. Otherwise drops a client that has been answered or is stuck, whose thread then makes room.
    fn has_room(&self) -> bool {
        let clients = self.clients();
        let has_room = clients.len() < MOST;
        if let Some(client) = dispensable(&clients).filter(|_| !has_room) {
            client.cut();
        }
        has_room
    }

    fn remove(&self, client: &Arc<Connection>) {
        self.clients().retain(|other| !Arc::ptr_eq(other, client));
    }

    fn clients(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the client to drop in favor of a new one: one that has been answered, or else the one stuck for longest. Clients that have not yet sent their
/// request are dropped first.
fn dispensable(clients: &[Arc<Connection>]) -> Option<&Arc<Connection>> {
    let is_dispensable = |client: &&Arc<Connection>| {
        let progress = client.progress();
        progress.stage == Stage::Answered || progress.since.elapsed() >= PATIENCE
    };
    let dispensable = clients.iter().filter(is_dispensable);
    dispensable.min_by_key(|client| client.progress())
}
