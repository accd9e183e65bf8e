//! Answers to requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Headers of all answers.
const HEADERS: &str =
    "Connection: close\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";
/// Number of bytes of a file that are read at once.
const CHUNK: usize = 64 << 10;

/// Status and explanation of a refused request.
pub(crate) type Refusal = (u16, &'static str);

/// Head and body of an answer.
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

/// A file that is sent completely.
#[derive(Clone, Debug)]
pub(crate) struct WholeFile {
    pub(crate) file: Arc<File>,
    /// Its length. If the file is shorter when it is read, the connection ends early, so that the client notices.
    pub(crate) bytes: u64,
    /// Bytes that are sent after the file.
    pub(crate) more: Arc<[u8]>,
    /// True after one client was sent everything.
    pub(crate) is_sent: Arc<AtomicBool>,
}

impl WholeFile {
    /// Returns the number of bytes that are sent.
    fn sent_bytes(&self) -> u64 {
        self.bytes + self.more.len() as u64
    }
}

impl Response {
    /// Returns an answer with bytes. `more` are lines of its head.
    pub(crate) fn from_bytes(status: u16, more: &str, body: Arc<[u8]>) -> Response {
        let head = head(status, body.len() as u64, more);
        let body = Body::Bytes(body);
        Response { head, body }
    }

    /// Returns an answer with a file.
    pub(crate) fn from_file(more: &str, file: WholeFile) -> Response {
        let head = head(200, file.sent_bytes(), more);
        let body = Body::File(file);
        Response { head, body }
    }

    /// Creates a refusal, with the reason as its text.
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
        Response::from_bytes(status, &more, body.into())
    }

    /// Returns the answer to HEAD: the same head, with the length that the body would have.
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

    /// Returns the number of bytes of head and body.
    pub(super) fn bytes(&self) -> u64 {
        let body_bytes = match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(file) => file.sent_bytes(),
        };
        self.head.len() as u64 + body_bytes
    }

    /// Sends head and body in pieces.
    ///
    /// # Errors
    /// Returns an error if the client accepts no more, or if the file cannot be read or is too short.
    pub(super) fn send(&self, mut send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        send(&self.head)?;
        match &self.body {
            Body::Bytes(bytes) => send(bytes),
            Body::File(whole) => {
                let mut chunk = vec![0; CHUNK];
                for at in (0..whole.bytes).step_by(CHUNK) {
                    let left = usize::try_from(whole.bytes - at).unwrap_or(CHUNK);
                    chunk.truncate(left);
                    whole.file.read_exact_at(&mut chunk, at)?;
                    send(&chunk)?;
                }
                send(&whole.more)?;
                whole.is_sent.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Returns everything that is sent.
    #[cfg(test)]
    pub(crate) fn sent(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        self.send(|bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }
}

fn head(status: u16, bytes: u64, more: &str) -> Vec<u8> {
    let phrase = phrase(status);
    format!("HTTP/1.1 {status} {phrase}\r\nContent-Length: {bytes}\r\n{more}{HEADERS}\r\n")
        .into_bytes()
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

    #[test]
    fn a_file_that_shrinks_is_an_error_and_one_that_grows_is_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let whole = WholeFile {
            file: Arc::new(File::open(file.path()).unwrap()),
            bytes: 10,
            more: Arc::from(&b"!"[..]),
            is_sent: Arc::default(),
        };
        let send = |text| {
            std::fs::write(file.path(), text).unwrap();
            Response::from_file("", whole.clone()).sent()
        };
        assert!(send("0123").is_err());
        assert!(!whole.is_sent.load(Ordering::Acquire));
        let all = send("0123456789abcdef").unwrap();
        assert!(all.ends_with(b"\r\n\r\n0123456789!"));
        assert!(whole.is_sent.load(Ordering::Acquire));
    }
}
