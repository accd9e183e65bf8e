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

/// Most clients at once. A process may have 1,024 open files, and the fragments need some.
const MOST: usize = 512;
/// Of so many, one that has not sent its request for this long makes room for another.
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
        let mut files = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        let streams = clients.iter();
        files.extend(streams.map(|client| PollFd::new(client.stream.as_fd(), of_client(client))));
        if poll(&mut files, PollTimeout::from(LOOK)).is_err() {
            thread::sleep(PAUSE); // a signal, or no memory
        }
        let files = files.iter();
        files.map(|file| file.any().unwrap_or(true)).collect()
    }

    fn accept(&self, clients: &mut Vec<Connection>) {
        loop {
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
            let mut client = Connection::new(stream);
            if clients.len() >= MOST && !self.make_room(clients) {
                client.refuse(503, "too many clients at once");
                client.go_on(&self.pages, &self.access);
                continue;
            }
            if client.go_on(&self.pages, &self.access) {
                clients.push(client);
            }
        }
    }

    /// Sends a client away: one whose answer is out, else the one that has kept everybody waiting for its request for the longest time.
    fn make_room(&self, clients: &mut Vec<Connection>) -> bool {
        let numbered = || clients.iter().enumerate();
        let answered = numbered().find(|(_, client)| client.is_answered());
        let reading = numbered().filter(|(_, client)| client.is_reading());
        let slowest = reading.min_by_key(|(_, client)| client.since);
        let slowest = slowest.filter(|(_, client)| client.since.elapsed() >= PATIENCE);
        let Some((number, _)) = answered.or(slowest) else {
            return false;
        };
        let mut client = clients.swap_remove(number);
        client.expire(&self.pages, &self.access);
        true
    }
}
