//! A plain HTTP client, which does what no browser would.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server on this machine, by its port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server(pub(crate) u16);

/// An answer: its status, its head in lower case, its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Connects to it.
    pub(crate) fn connect(self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.0)).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Returns the answer to some bytes.
    pub(crate) fn send(self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // it may be refused before all of it is out
        reply(&mut stream).unwrap()
    }

    /// Returns the answer to a request.
    pub(crate) fn ask(self, method: &str, target: &str, headers: &str) -> Reply {
        self.send(format!("{method} {target} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }
}

impl Reply {
    /// Returns the body as a text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Reads an answer; `None` if the server said nothing.
pub(crate) fn reply(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => {}
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    Some(Reply {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_lowercase() + "\r\n",
        body: bytes[end + 4..].to_vec(),
    })
}
