//! A program that serves figures or a trace, and a plain HTTP client, which can send what no browser would.

use crate::program::{Ground, Started};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Header of requests from the page that may read a trace.
pub(crate) const PERFETTO: &str = "Origin: https://ui.perfetto.dev\r\n";

/// An answer: its status, its head in lower case, and its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// Reads an answer; `None` if the server sent nothing.
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

/// A program that serves something on this machine.
pub(crate) struct Serving {
    pub(crate) started: Started,
    /// The link that the program printed.
    pub(crate) link: String,
    port: u16,
    /// Path and query of the address that it serves.
    pub(crate) path: String,
    /// Headers of a request that is allowed to read it.
    pub(crate) headers: String,
}

impl Serving {
    /// Serves the figures of the run in `out`.
    pub(crate) fn figures(ground: &Ground, words: &[&str]) -> Serving {
        let words = [&["serve", "--listen", "127.0.0.1:0"], words, &["out"]].concat();
        Serving::from_serve(ground.start(&words), "127.0.0.1")
    }

    /// Returns a started command that serves figures on this host.
    pub(crate) fn from_serve(started: Started, host: &str) -> Serving {
        let line = started.wait_for_line(&format!("sa-profile: serving http://{host}:"));
        let mut serving = Serving::parse(started, &line);
        serving.headers = "Host: localhost\r\n".to_owned();
        if let Some((_, token)) = serving.path.split_once("/?token=") {
            serving.headers += &bearer(token);
        }
        serving
    }

    /// Serves the trace in a file.
    pub(crate) fn trace(ground: &Ground, name: &str) -> Serving {
        let started = ground.start(&["open", name, "--port", "0"]);
        Serving::from_open(started)
    }

    /// Returns a started command that serves a trace.
    pub(crate) fn from_open(started: Started) -> Serving {
        let line = started
            .wait_for_line("sa-profile: open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:");
        let mut serving = Serving::parse(started, &line);
        serving.headers = format!("Host: 127.0.0.1:{}\r\n{PERFETTO}", serving.port);
        serving
    }

    fn parse(started: Started, line: &str) -> Serving {
        let mut words = line.split(' ');
        let link = words.find(|word| word.starts_with("http")).unwrap();
        let (_, address) = link.rsplit_once("http://").unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let path = path.split_once('&').map_or(path, |(path, _)| path);
        let (_, port) = host.rsplit_once(':').unwrap();
        Serving {
            started,
            link: link.to_owned(),
            port: port.parse().unwrap(),
            path: format!("/{path}"),
            headers: String::new(),
        }
    }

    /// Connects to the server.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Returns the answer to some bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // the server may refuse it before all of it is sent
        reply(&mut stream).unwrap()
    }

    /// Returns the answer to a request with these headers.
    pub(crate) fn send_request(&self, method: &str, target: &str, headers: &str) -> Reply {
        self.send(format!("{method} {target} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }

    /// Returns the answer to a request with the headers that allow it.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Reply {
        self.send_request(method, target, &self.headers)
    }
}

/// Returns the header with a token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
