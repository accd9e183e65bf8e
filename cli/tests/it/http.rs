//! Attacks the server of `serve` and `open`: odd requests, slow clients, clients that never read, and many at once.

use crate::program::{Ground, Started};
use crate::serving::{Serving, reply};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;

/// Size of the trace that `open` serves. No socket buffers as much.
const TRACE_BYTES: usize = 64 << 20;

/// Starts both commands, with data that other users may not read.
fn both(ground: &Ground) -> [Serving; 2] {
    Started::spawn(&mut ground.worker(&["api", "requests=5"])).end();
    let mut figures = Serving::figures(ground, &[]);
    figures.path = "/stats".to_owned();
    figures.started.wait_until(|| status(&figures) == 200);
    let mut trace = b"[{\"ph\":\"M\"}".to_vec();
    trace.resize(TRACE_BYTES - 1, b'\n');
    trace.push(b']');
    let path = ground.path("t.json");
    fs::write(&path, trace).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    [figures, Serving::trace(ground, "t.json")]
}

/// Returns the status of a request that gets no body.
fn status(serving: &Serving) -> u16 {
    serving.ask("HEAD", &serving.path).status
}

#[test]
fn what_is_malformed_or_not_there_is_refused() {
    let ground = Ground::new();
    for serving in both(&ground) {
        let long = "x".repeat(100_000);
        for (text, status) in [
            (format!("{long}\r\n\r\n"), 414),
            ("hello\r\n\r\n".to_owned(), 400),
        ] {
            let found = serving.send(text.as_bytes());
            assert_eq!(found.status, status, "{text:.200}: {found:?}");
            let no_sniffing = "x-content-type-options: nosniff\r\n";
            assert!(found.head.contains(no_sniffing), "{found:?}");
        }
        // A request that ends in the middle gets no answer.
        let mut half = serving.connect();
        half.write_all(b"GET /stats HTT").unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        assert!(reply(&mut half).is_none());
        let head = serving.ask("HEAD", &serving.path);
        assert_eq!((head.status, head.body.len()), (200, 0));
        let of_nothing = "content-length: 0\r\n";
        assert!(!head.head.contains(of_nothing), "{}", head.head);
    }
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let ground = Ground::new();
    for serving in both(&ground) {
        let connect = |request: &str| {
            let mut stream = serving.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let mut slow: Vec<TcpStream> = (0..200).map(|_| connect("GET /sta")).collect();
        // These clients send a request and never read the answer.
        let request = format!("GET {} HTTP/1.1\r\n{}\r\n", serving.path, serving.headers);
        let deaf: Vec<TcpStream> = (0..50).map(|_| connect(&request)).collect();
        // A server that waited for one of them would exceed the test's time limit.
        for _ in 0..20 {
            assert_eq!(status(&serving), 200);
        }
        let refused = reply(&mut slow[0]).unwrap();
        assert_eq!(refused.status, 408);
        let whole = serving.ask("GET", &serving.path);
        assert_eq!(whole.status, 200);
        let length = format!("content-length: {}\r\n", whole.body.len());
        assert!(whole.head.contains(&length), "{}", whole.head);
        drop((slow, deaf));
    }
}
