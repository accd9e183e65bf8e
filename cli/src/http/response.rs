//! An answer, and how much of it is out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Headers of each answer.
const HEADERS: &str =
    "Connection: close\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";
/// Bytes of a file that are read at once.
const CHUNK: usize = 64 << 10;

/// Status and explanation of a refused request.
pub(crate) type Refusal = (u16, &'static str);

/// A head and a body.
#[derive(Debug)]
pub(crate) struct Response {
    head: Vec<u8>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Bytes that many answers may share.
    Bytes(Arc<[u8]>),
    File(WholeFile),
}

/// A file that is sent from its first byte to its last.
#[derive(Clone, Debug)]
pub(crate) struct WholeFile {
    pub(crate) file: Arc<File>,
    /// Its length. A file that is shorter by the time it is read ends the connection, so that nobody takes half of it for all.
    pub(crate) bytes: u64,
    /// Set once somebody was sent all of it.
    pub(crate) is_sent: Arc<AtomicBool>,
}

impl Response {
    /// Returns an answer with bytes. `more` are lines of its head.
    pub(crate) fn of_bytes(status: u16, more: &str, body: Arc<[u8]>) -> Response {
        let head = head(status, body.len() as u64, more);
        let body = Body::Bytes(body);
        Response { head, body }
    }

    /// Returns an answer with a file.
    pub(crate) fn of_file(more: &str, file: WholeFile) -> Response {
        let head = head(200, file.bytes, more);
        let body = Body::File(file);
        Response { head, body }
    }

    /// Returns a refusal, with the reason as its text.
    pub(super) fn refusal((status, why): Refusal, methods: &str) -> Response {
        let more = match status {
            401 => "WWW-Authenticate: Bearer\r\n".to_owned(),
            405 => format!("Allow: {methods}\r\n"),
            503 => "Retry-After: 1\r\n".to_owned(),
            _ => String::new(),
        };
        let more = format!(
            "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\n{more}"
        );
        let body = format!("{why}\n").into_bytes();
        Response::of_bytes(status, &more, body.into())
    }

    /// Returns the answer to HEAD: the same head, which says how long the body would be.
    pub(super) fn without_body(self) -> Response {
        Response {
            head: self.head,
            body: Body::Bytes(Arc::from(&[][..])),
        }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        let head = String::from_utf8_lossy(&self.head);
        head[9..12].parse().unwrap()
    }

    /// Returns all that is sent.
    #[cfg(test)]
    pub(crate) fn bytes(self) -> Vec<u8> {
        tests::sent(&mut Outgoing::new(self), CHUNK).unwrap()
    }

    fn body_bytes(&self) -> u64 {
        match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(file) => file.bytes,
        }
    }
}

fn head(status: u16, bytes: u64, more: &str) -> Vec<u8> {
    let phrase = phrase(status);
    format!("HTTP/1.1 {status} {phrase}\r\nContent-Length: {bytes}\r\n{more}{HEADERS}\r\n")
        .into_bytes()
}

/// A response on its way to a client.
#[derive(Debug)]
pub(super) struct Outgoing {
    response: Response,
    /// Bytes of head and body that are out.
    sent: u64,
    /// Bytes of the file that were read and are not out yet, from `at` on.
    chunk: Vec<u8>,
    at: usize,
}

impl Outgoing {
    pub(super) fn new(response: Response) -> Outgoing {
        Outgoing {
            response,
            sent: 0,
            chunk: Vec::new(),
            at: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.response.head.len() as u64 + self.response.body_bytes()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the next bytes to send; an empty slice at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or ends too early.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        let head = &self.response.head;
        let Some(at) = self.sent.checked_sub(head.len() as u64) else {
            let at = usize::try_from(self.sent).map_err(io::Error::other)?;
            return Ok(&head[at..]);
        };
        match &self.response.body {
            Body::Bytes(bytes) => {
                let at = usize::try_from(at).map_err(io::Error::other)?;
                Ok(bytes.get(at..).unwrap_or_default())
            }
            Body::File(whole) => {
                if self.at == self.chunk.len() {
                    read_chunk(whole, at, &mut self.chunk)?;
                    self.at = 0;
                }
                Ok(&self.chunk[self.at..])
            }
        }
    }

    /// Notes that `bytes` more bytes were sent.
    pub(super) fn advance(&mut self, bytes: usize) {
        let is_body = self.sent >= self.response.head.len() as u64;
        self.sent += bytes as u64;
        if let (true, Body::File(whole)) = (is_body, &self.response.body) {
            self.at += bytes;
            if self.sent == self.bytes() {
                whole.is_sent.store(true, Ordering::Release);
            }
        }
    }
}

/// Reads the bytes of a file from `at` on; none at its end.
fn read_chunk(whole: &WholeFile, at: u64, chunk: &mut Vec<u8>) -> io::Result<()> {
    let left = usize::try_from(whole.bytes - at).unwrap_or(usize::MAX);
    chunk.resize(left.min(CHUNK), 0);
    whole.file.read_exact_at(chunk, at)
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole_file(bytes: &[u8]) -> (tempfile::NamedTempFile, WholeFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let whole = WholeFile {
            file: Arc::new(File::open(file.path()).unwrap()),
            bytes: bytes.len() as u64,
            is_sent: Arc::default(),
        };
        (file, whole)
    }

    /// Sends at most `most` bytes at a time, and returns all of them.
    pub(super) fn sent(outgoing: &mut Outgoing, most: usize) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let next = outgoing.next()?;
            let bytes = next.len().min(most);
            if bytes == 0 {
                return Ok(all);
            }
            all.extend_from_slice(&next[..bytes]);
            outgoing.advance(bytes);
        }
    }

    #[test]
    fn a_file_is_sent_when_its_last_byte_is_out_and_not_before() {
        let body: Vec<u8> = (0..u8::MAX).cycle().take(3 * CHUNK + 7).collect();
        let (_file, whole) = whole_file(&body);
        let mut outgoing = Outgoing::new(Response::of_file("X: y\r\n", whole.clone()));
        let mut all = Vec::new();
        while outgoing.sent() + 1 < outgoing.bytes() {
            let left = outgoing.bytes() - outgoing.sent() - 1;
            let next = outgoing.next().unwrap();
            let next = &next[..next.len().min(usize::try_from(left).unwrap())];
            all.extend_from_slice(next);
            let bytes = next.len();
            outgoing.advance(bytes);
        }
        assert!(!whole.is_sent.load(Ordering::Acquire));
        all.extend(sent(&mut outgoing, 1_000).unwrap());
        assert!(whole.is_sent.load(Ordering::Acquire));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
        assert!(all.starts_with(head.as_bytes()) && all.ends_with(&body));
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_one_that_grows_is_cut() {
        let (file, whole) = whole_file(b"0123456789");
        let response = || Response::of_file("", whole.clone());
        std::fs::write(file.path(), "0123").unwrap();
        assert!(sent(&mut Outgoing::new(response()), 99).is_err());
        assert!(!whole.is_sent.load(Ordering::Acquire));
        std::fs::write(file.path(), "0123456789abcdef").unwrap();
        let all = sent(&mut Outgoing::new(response()), 99).unwrap();
        assert!(all.ends_with(b"\r\n\r\n0123456789"));
    }
}
