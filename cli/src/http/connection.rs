//! Serves one client: reads its request and sends the answer, each within a time limit.

use super::Site;
use super::request::respond;
use super::response::Response;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for receiving a request.
const READ: Duration = Duration::from_secs(5);
/// Time limit for sending an answer: `WRITE`, plus one second per `LEAST_BYTES_A_SECOND` bytes.
const WRITE: Duration = Duration::from_secs(10);
const LEAST_BYTES_A_SECOND: u64 = 64 << 10;
/// Time limit for the client to close the connection after its answer. If the server closed it at once, unread bytes from the client would reset the
/// connection, and the end of the answer could be lost.
const DRAIN: Duration = Duration::from_secs(1);
/// Interval at which the thread of a silent client checks if the site is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of bytes that are sent at once. A write only returns when all of them are sent, so the progress of a slow client would not be visible with
/// larger pieces.
const PIECE: usize = 16 << 10;
/// Number of bytes that are read at once, and the maximum that is read and ignored.
const CHUNK: usize = 4 << 10;
const DRAINED: usize = 1 << 20;

/// A client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    progress: Mutex<Progress>,
}

/// The stages of serving a client. Clients in the first stage are dropped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The answer was sent.
    Answered,
    Reading,
    Writing,
}

/// Stage of a client, and the time of its last progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    pub(super) since: Instant,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Connection {
        let (stage, since) = (Stage::Reading, Instant::now());
        Connection {
            stream,
            progress: Mutex::new(Progress { stage, since }),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the client has reached this stage.
    fn set_stage(&self, stage: Stage) {
        let since = Instant::now();
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Progress { stage, since };
    }

    /// Shuts down the socket from another thread. The thread that serves this connection then gets
    /// an error and ends.
    pub(super) fn cut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both); // the client may be gone
    }

    /// Serves the client.
    ///
    /// # Errors
    /// Returns an error if the client is gone or too slow, or if the site is over.
    pub(super) fn serve(&self, site: &impl Site) -> io::Result<()> {
        let response = self.receive(site)?;
        let seconds = response.bytes() / LEAST_BYTES_A_SECOND;
        let deadline = Instant::now() + WRITE + Duration::from_secs(seconds);
        self.set_stage(Stage::Writing);
        response.send(|bytes| self.send(bytes, deadline))?;
        self.set_stage(Stage::Answered);
        self.stream.shutdown(Shutdown::Write)?;
        self.drain()
    }

    /// Returns the answer to the client's request.
    fn receive<S: Site>(&self, site: &S) -> io::Result<Response> {
        let deadline = Instant::now() + READ;
        let (mut bytes, mut chunk) = (Vec::new(), [0; CHUNK]);
        self.stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        loop {
            match (&self.stream).read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes.extend_from_slice(&chunk[..read]),
                Err(error) if !is_timeout(&error) || site.is_over() => return Err(error),
                Err(_) => {}
            }
            if let Some(response) = respond(&bytes, site) {
                return Ok(response);
            }
            if Instant::now() >= deadline && !bytes.is_empty() {
                let why = (408, "the request took too long");
                return Ok(Response::refusal(why, S::METHODS));
            }
            left(deadline)?;
        }
    }

    fn send(&self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            match (&self.stream).write(&bytes[..bytes.len().min(PIECE)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.set_stage(Stage::Writing);
        }
        Ok(())
    }

    /// Reads and ignores what the client still sends.
    fn drain(&self) -> io::Result<()> {
        let deadline = Instant::now() + DRAIN;
        let (mut drained, mut chunk) = (0, [0; CHUNK]);
        while drained < DRAINED {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match (&self.stream).read(&mut chunk)? {
                0 => break,
                read => drained += read,
            }
        }
        Ok(())
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Returns the time until a deadline; an error if it has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::Request;
    use crate::http::response::Refusal;
    use std::net::TcpListener;
    use std::thread;

    /// More than the buffers of both sockets hold.
    const PAGE_BYTES: usize = 64 << 20;

    /// A site with one long page.
    struct LongPage;

    impl Site for LongPage {
        const METHODS: &'static str = "GET";

        fn is_loopback(&self) -> bool {
            true
        }

        fn answer(&self, _: &Request<'_>) -> Result<Response, Refusal> {
            Ok(Response::from_bytes(200, "", vec![0; PAGE_BYTES].into()))
        }
    }

    #[test]
    fn a_client_that_reads_a_part_of_a_page_makes_progress() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connection = Connection::new(listener.accept().unwrap().0);
        let request = b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
        client.write_all(request).unwrap();
        thread::scope(|scope| {
            let served = scope.spawn(|| connection.serve(&LongPage));
            client.read_exact(&mut [0]).unwrap();
            let begun = connection.progress();
            client.read_exact(&mut vec![0; PAGE_BYTES / 4]).unwrap();
            assert!(connection.progress() > begun, "{begun:?}");
            drop(client);
            served.join().unwrap().unwrap_err();
        });
    }
}
