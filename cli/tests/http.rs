//! The server of `serve` and `open` under attack: odd requests, slow and deaf clients, many at once.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod client;
mod program;

use client::{Server, reply};
use program::{Ground, Started};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;

/// Bytes of the trace that `open` serves, which no socket buffers.
const TRACE_BYTES: usize = 64 << 20;

/// A program that serves something.
struct Attacked {
    started: Started,
    server: Server,
    /// The content that it serves, and the headers of the request.
    target: String,
    headers: String,
}

impl Attacked {
    /// Starts both commands, each on something that others may not read.
    fn both(ground: &Ground) -> [Attacked; 2] {
        [Attacked::serve(ground), Attacked::open(ground)]
    }

    fn serve(ground: &Ground) -> Attacked {
        Started::of(&mut ground.worker(&["api", "requests=5"])).end();
        let started = ground.start(&["serve", "--listen", "127.0.0.1:0", "out"]);
        let line = started.wait_for_line("sa-profile: serving http://127.0.0.1:");
        let (_, address) = line.split_once("127.0.0.1:").unwrap();
        let (port, rest) = address.split_once("/?token=").unwrap();
        let token = rest.split(' ').next().unwrap();
        let attacked = Attacked {
            server: Server(port.parse().unwrap()),
            target: "/stats".to_owned(),
            headers: format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n"),
            started,
        };
        attacked.started.wait_until(|| attacked.head() == 200);
        attacked
    }

    fn open(ground: &Ground) -> Attacked {
        let mut trace = b"[{\"ph\":\"M\"}".to_vec();
        trace.resize(TRACE_BYTES - 1, b'\n');
        trace.push(b']');
        let path = ground.path("t.json");
        fs::write(&path, trace).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let started = ground.start(&["open", "t.json", "--port", "0"]);
        let line = started.wait_for_line("sa-profile: open https://ui.perfetto.dev/");
        let (_, address) = line.split_once("127.0.0.1:").unwrap();
        let (port, path) = address.split_once('/').unwrap();
        Attacked {
            server: Server(port.parse().unwrap()),
            target: format!("/{path}"),
            headers: "Host: localhost\r\nOrigin: https://ui.perfetto.dev\r\n".to_owned(),
            started,
        }
    }

    fn request(&self, method: &str) -> String {
        format!("{method} {} HTTP/1.1\r\n{}\r\n", self.target, self.headers)
    }

    /// The status of a request that gets no body.
    fn head(&self) -> u16 {
        self.server.send(self.request("HEAD").as_bytes()).status
    }
}

#[test]
fn what_is_malformed_or_not_there_is_refused() {
    let ground = Ground::new();
    for attacked in Attacked::both(&ground) {
        let (target, headers) = (&attacked.target, &attacked.headers);
        let long = "x".repeat(100_000);
        for (text, status) in [
            (format!("HEAD {target} HTTP/1.1\r\n{headers}\r\n"), 200),
            (format!("{long}\r\n\r\n"), 414),
            ("hello\r\n\r\n".to_owned(), 400),
        ] {
            let found = attacked.server.send(text.as_bytes());
            assert_eq!(found.status, status, "{text:.200}: {found:?}");
            assert!(
                found.head.contains("x-content-type-options: nosniff\r\n"),
                "{found:?}"
            );
        }
        // Nobody gets an answer to a request that ends in its middle.
        let mut half = attacked.server.connect();
        half.write_all(b"GET /stats HTT").unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        assert!(reply(&mut half).is_none());
        let head = attacked.server.send(attacked.request("HEAD").as_bytes());
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert!(
            !head.head.contains("content-length: 0\r\n"),
            "{}",
            head.head
        );
    }
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let ground = Ground::new();
    for attacked in Attacked::both(&ground) {
        let mut slow: Vec<TcpStream> = (0..200).map(|_| attacked.server.connect()).collect();
        for stream in &mut slow {
            stream.write_all(b"GET /sta").unwrap();
        }
        // These ask and never read.
        let deaf: Vec<TcpStream> = (0..50)
            .map(|_| {
                let mut stream = attacked.server.connect();
                let asked = attacked.request("GET");
                stream.write_all(asked.as_bytes()).unwrap();
                stream
            })
            .collect();
        // A server that waited for one of them would take more time than a test has.
        for _ in 0..20 {
            assert_eq!(attacked.head(), 200);
        }
        let refused = reply(&mut slow[0]).unwrap();
        assert_eq!(refused.status, 408);
        let whole = attacked.server.send(attacked.request("GET").as_bytes());
        assert_eq!(whole.status, 200);
        let length = format!("content-length: {}\r\n", whole.body.len());
        assert!(whole.head.contains(&length), "{}", whole.head);
        drop((slow, deaf));
    }
}
