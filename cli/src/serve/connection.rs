//! One client: its request, its answer, each within its time.

use super::pages::Pages;
use super::request::{Access, Answer, judge};
use super::response::Response;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a request may take to arrive, and an answer to be taken.
const READ: Duration = Duration::from_secs(5);
const WRITE: Duration = Duration::from_secs(10);
/// How long a client may take to notice that the answer is over. What it still sends is not looked at: closing would take the answer from it.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes that are read at once, and at most of what nobody looks at.
const CHUNK: usize = 4 << 10;
const DRAINED: usize = 1 << 20;

/// A client.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    state: State,
    /// When it came, or took in some of its answer.
    pub(super) since: Instant,
    pub(super) deadline: Instant,
}

#[derive(Debug)]
enum State {
    Reading(Vec<u8>),
    /// The answer, and how much of it is out.
    Writing(Response, usize),
    /// The answer is out. How much came since.
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

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.state, State::Draining(_))
    }

    pub(super) fn is_writing(&self) -> bool {
        matches!(self.state, State::Writing(..))
    }

    /// Does what can be done without waiting; whether the client is still to be served.
    pub(super) fn go_on(&mut self, pages: &Pages, access: &Access) -> bool {
        loop {
            let step = match &mut self.state {
                State::Reading(bytes) => read(&mut self.stream, bytes),
                State::Writing(response, at) => {
                    let before = *at;
                    let step = write(&mut self.stream, response, at);
                    if *at > before {
                        self.since = Instant::now();
                    }
                    step
                }
                State::Draining(drained) => drain(&mut self.stream, drained),
            };
            match step {
                Step::Waits => return true,
                Step::Gone => return false,
                Step::Done if !self.step(pages, access) => return false,
                Step::Done => {}
            }
        }
    }

    /// What comes after a part is done; whether anything does.
    fn step(&mut self, pages: &Pages, access: &Access) -> bool {
        match &self.state {
            State::Reading(bytes) => {
                if let Some(answer) = judge(bytes, access) {
                    self.answer(response(answer, pages));
                }
                true
            }
            State::Writing(..) => {
                let _ = self.stream.shutdown(Shutdown::Write); // it may be gone, which the next read tells
                self.state = State::Draining(0);
                self.deadline = Instant::now() + DRAIN;
                true
            }
            State::Draining(_) => false,
        }
    }

    /// Its time is over; whether it is still to be told so.
    pub(super) fn expire(&mut self, pages: &Pages, access: &Access) -> bool {
        match &self.state {
            State::Reading(bytes) if !bytes.is_empty() => {
                self.refuse(408, "the request took too long");
                self.go_on(pages, access)
            }
            _ => false,
        }
    }

    /// Answers a client that is not served.
    pub(super) fn refuse(&mut self, status: u16, why: &str) {
        self.answer(Response::refusal(status, why, false));
    }

    fn answer(&mut self, response: Response) {
        self.state = State::Writing(response, 0);
        self.since = Instant::now();
        self.deadline = Instant::now() + WRITE;
    }
}

/// How far a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// The client has to do something first.
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

fn write(stream: &mut TcpStream, response: &Response, at: &mut usize) -> Step {
    while !response.rest(*at).is_empty() {
        match stream.write(response.rest(*at)) {
            Ok(0) => return Step::Gone,
            Ok(written) => *at += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return failed(&error),
        }
    }
    Step::Done
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

fn response(answer: Answer, pages: &Pages) -> Response {
    match answer.page {
        Err((status, why)) => Response::refusal(status, why, answer.is_head),
        Ok(page) => match pages.of(page) {
            Some(body) => Response::page(page, body, answer.is_head),
            None => Response::refusal(503, "the run was not looked at yet", answer.is_head),
        },
    }
}
