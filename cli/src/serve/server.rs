//! One thread serves all clients: none of them waits for another, and there are only so many.

use super::connection::Connection;
use super::pages::Pages;
use super::request::Access;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Most clients at once; the others wait until one of these is served. A process may have 1,024 open files, and others need some.
const MOST: usize = 512;
/// Of so many, one that has neither sent its request nor taken any of its answer for this long makes room for another.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often deadlines are looked at.
const LOOK: u16 = 500;
/// A pause where the system gives no more sockets.
const PAUSE: Duration = Duration::from_millis(50);

/// A server; it ends with the process.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    access: Access,
    pages: Arc<Pages>,
}

impl Server {
    /// A server of what is shown in `pages`.
    pub(super) fn new(
        listener: TcpListener,
        access: Access,
        pages: Arc<Pages>,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            access,
            pages,
        })
    }

    /// Serves until the process ends.
    pub(super) fn run(&self) {
        let mut clients: Vec<Connection> = Vec::new();
        loop {
            let ready = self.wait(&clients);
            let mut ready = ready.into_iter();
            let has_new = ready.next().unwrap_or(false);
            clients.retain_mut(|client| {
                !ready.next().unwrap_or(false) || client.go_on(&self.pages, &self.access)
            });
            let now = Instant::now();
            clients.retain_mut(|client| {
                now < client.deadline || client.expire(&self.pages, &self.access)
            });
            if has_new {
                self.accept(&mut clients);
            }
        }
    }

    /// Waits until somebody has something to do; for the listener and each client whether it is that.
    fn wait(&self, clients: &[Connection]) -> Vec<bool> {
        let of_client = |client: &Connection| match client.is_writing() {
            true => PollFlags::POLLOUT,
            false => PollFlags::POLLIN,
        };
        // While there is no room, those who come wait in the system's queue.
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
                // It went away meanwhile.
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
            if client.go_on(&self.pages, &self.access) {
                clients.push(client);
            }
        }
    }
}

/// Whether there is room for a client, or one can be sent away for it.
fn has_room(clients: &[Connection]) -> bool {
    clients.len() < MOST || dispensable(clients).is_some()
}

/// The client that makes room for another: one whose answer is out, else the one that has kept everybody waiting for the longest time.
fn dispensable(clients: &[Connection]) -> Option<usize> {
    let numbered = || clients.iter().enumerate();
    let answered = numbered().find(|(_, client)| client.is_answered());
    let slowest = numbered().min_by_key(|(_, client)| client.since);
    let slowest = slowest.filter(|(_, client)| client.since.elapsed() >= PATIENCE);
    answered.or(slowest).map(|(number, _)| number)
}
