//! One client: its request and its answer, each within its time.

use super::Site;
use super::request::respond;
use super::response::{Outgoing, Response};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for receiving a request.
const READ: Duration = Duration::from_secs(5);
/// Time limit for sending an answer: `WRITE`, plus one second per `LEAST_BYTES_A_SECOND` bytes.
const WRITE: Duration = Duration::from_secs(10);
const LEAST_BYTES_A_SECOND: u64 = 64 << 10;
/// Time limit for the client to close the connection after its answer. Closing it at once, with unread bytes from the client, would reset the connection
/// and could lose the end of the answer.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes that are read at once, and the most that are read and ignored.
const CHUNK: usize = 4 << 10;
const DRAINED: usize = 1 << 20;
/// Writes to one client before the others have their turn.
const TURN: usize = 16;

/// A client.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    state: State,
    /// When it connected, or last received some of its answer.
    pub(super) since: Instant,
    pub(super) deadline: Instant,
}

#[derive(Debug)]
enum State {
    Reading(Vec<u8>),
    Writing(Outgoing),
    /// The answer is out. Bytes that came since.
    Draining(usize),
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Connection {
        let since = Instant::now();
        Connection {
            stream,
            state: State::Reading(Vec::new()),
            since,
            deadline: since + READ,
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.state, State::Reading(_))
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.state, State::Writing(_))
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.state, State::Draining(_))
    }

    /// Does what can be done without waiting. Returns true if the client is still to be served.
    pub(super) fn go_on(&mut self, site: &impl Site) -> bool {
        loop {
            let step = match &mut self.state {
                State::Reading(bytes) => read(&mut self.stream, bytes),
                State::Writing(outgoing) => {
                    let before = outgoing.sent();
                    let step = write(&mut self.stream, outgoing);
                    if outgoing.sent() > before {
                        self.since = Instant::now();
                    }
                    step
                }
                State::Draining(drained) => drain(&mut self.stream, drained),
            };
            match step {
                Step::Waits => return true,
                Step::Gone => return false,
                Step::Done if !self.step(site) => return false,
                Step::Done => {}
            }
        }
    }

    /// Begins what follows the part that is done. Returns false if nothing does.
    fn step(&mut self, site: &impl Site) -> bool {
        match &self.state {
            State::Reading(bytes) => {
                if let Some(response) = respond(bytes, site) {
                    self.answer(response);
                }
                true
            }
            State::Writing(_) => {
                let _ = self.stream.shutdown(Shutdown::Write); // if the client is gone, the next read finds out
                self.state = State::Draining(0);
                self.deadline = Instant::now() + DRAIN;
                true
            }
            State::Draining(_) => false,
        }
    }

    /// Handles a client whose time limit has passed. Returns true if it still gets an error message.
    pub(super) fn expire<S: Site>(&mut self, site: &S) -> bool {
        match &self.state {
            State::Reading(bytes) if !bytes.is_empty() => {
                let why = (408, "the request took too long");
                self.answer(Response::refusal(why, S::METHODS));
                self.go_on(site)
            }
            _ => false,
        }
    }

    fn answer(&mut self, response: Response) {
        let outgoing = Outgoing::new(response);
        let seconds = outgoing.bytes() / LEAST_BYTES_A_SECOND;
        self.since = Instant::now();
        self.deadline = self.since + WRITE + Duration::from_secs(seconds);
        self.state = State::Writing(outgoing);
    }
}

/// Result of one step of serving a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// The client, or another one, has to do something first.
    Waits,
    Gone,
}

fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Step {
    let mut chunk = [0; CHUNK];
    match stream.read(&mut chunk) {
        Ok(0) => Step::Gone,
        Ok(read) => {
            bytes.extend_from_slice(&chunk[..read]);
            Step::Done
        }
        Err(error) => failed(&error),
    }
}

fn write(stream: &mut TcpStream, outgoing: &mut Outgoing) -> Step {
    for _ in 0..TURN {
        let next = match outgoing.next() {
            Ok([]) => return Step::Done,
            Ok(next) => next,
            Err(_) => return Step::Gone, // the file that is sent: its client sees that bytes are missing
        };
        match stream.write(next) {
            Ok(0) => return Step::Gone,
            Ok(written) => outgoing.advance(written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return failed(&error),
        }
    }
    Step::Waits
}

fn drain(stream: &mut TcpStream, drained: &mut usize) -> Step {
    let mut chunk = [0; CHUNK];
    while *drained < DRAINED {
        match stream.read(&mut chunk) {
            Ok(0) => return Step::Gone,
            Ok(read) => *drained += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return failed(&error),
        }
    }
    Step::Done
}

fn failed(error: &std::io::Error) -> Step {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Step::Waits,
        _ => Step::Gone,
    }
}
