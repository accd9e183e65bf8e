//! One thread serves all clients: none of them waits for another, and their number is bounded.

use super::Site;
use super::connection::Connection;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// Most clients at once; the others wait until one of these is served. A process may have 1,024 open files, and others need some.
const MOST: usize = 512;
/// Once there are that many, a client that made no progress for this long makes room for another.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often deadlines are checked.
const LOOK: u16 = 500;
/// A pause where the system gives no more sockets.
const PAUSE: Duration = Duration::from_millis(50);

/// A server of a site.
#[derive(Debug)]
pub(crate) struct Server<S> {
    listener: TcpListener,
    site: S,
}

impl<S: Site> Server<S> {
    /// Creates a server. It accepts clients once it runs.
    pub(crate) fn new(listener: TcpListener, site: S) -> io::Result<Server<S>> {
        listener.set_nonblocking(true)?;
        Ok(Server { listener, site })
    }

    /// Serves clients until the site is over and all pending answers are sent.
    pub(crate) fn run(&self) {
        let mut clients: Vec<Connection> = Vec::new();
        while !(self.site.is_over() && clients.iter().all(Connection::is_reading)) {
            let ready = self.wait(&clients);
            let mut ready = ready.into_iter();
            let has_new = ready.next().unwrap_or(false);
            clients.retain_mut(|client| !ready.next().unwrap_or(false) || client.go_on(&self.site));
            let now = Instant::now();
            clients.retain_mut(|client| now < client.deadline || client.expire(&self.site));
            if has_new {
                self.accept(&mut clients);
            }
        }
    }

    /// Waits until somebody can be served. Returns whether the listener is ready, and then the same for each client.
    fn wait(&self, clients: &[Connection]) -> Vec<bool> {
        let of_client = |client: &Connection| match client.is_writing() {
            true => PollFlags::POLLOUT,
            false => PollFlags::POLLIN,
        };
        // While there is no room, new clients wait in the system's queue.
        let of_listener = match has_room(clients) {
            true => PollFlags::POLLIN,
            false => PollFlags::empty(),
        };
        let mut files = vec![PollFd::new(self.listener.as_fd(), of_listener)];
        let streams = clients.iter();
        files.extend(streams.map(|client| PollFd::new(client.stream.as_fd(), of_client(client))));
        if poll(&mut files, PollTimeout::from(LOOK)).is_err() {
            thread::sleep(PAUSE); // a signal, or no memory
        }
        let files = files.iter();
        files.map(|file| file.any().unwrap_or(true)).collect()
    }

    fn accept(&self, clients: &mut Vec<Connection>) {
        while has_room(clients) {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client went away meanwhile.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => return thread::sleep(PAUSE),
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if clients.len() >= MOST
                && let Some(number) = dispensable(clients)
            {
                clients.swap_remove(number);
            }
            let mut client = Connection::new(stream);
            if client.go_on(&self.site) {
                clients.push(client);
            }
        }
    }
}

/// Returns true if there is room for another client, or a client that can be dropped.
fn has_room(clients: &[Connection]) -> bool {
    clients.len() < MOST || dispensable(clients).is_some()
}

/// Returns the client to drop in favor of a new one: one that has been answered, or else the one stuck for longest. Clients that have not yet sent their
/// request are dropped first.
fn dispensable(clients: &[Connection]) -> Option<usize> {
    let numbered = || clients.iter().enumerate();
    let answered = numbered().find(|(_, client)| client.is_answered());
    let stuck = numbered().filter(|(_, client)| client.since.elapsed() >= PATIENCE);
    let slowest = stuck.min_by_key(|(_, client)| (client.is_writing(), client.since));
    answered.or(slowest).map(|(number, _)| number)
}
