//! `sa-profile open`, fetched by a plain HTTP client: what a page of Perfetto's gets, and what nobody else does.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod program;

use program::{Ended, Ground, Started, worker};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

const PERFETTO: &str = "Origin: https://ui.perfetto.dev\r\n";

/// A program that serves a trace, and what it serves.
struct Serving {
    started: Started,
    port: u16,
    body: Vec<u8>,
}

/// An answer: its status, its headers in lower case, its body.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Serving {
    /// Serves `bytes` bytes as `my trace.json`.
    fn start(ground: &Ground, bytes: usize) -> Serving {
        let body: Vec<u8> = b"0123456789abcde\n"
            .iter()
            .copied()
            .cycle()
            .take(bytes)
            .collect();
        fs::write(ground.path("my trace.json"), &body).unwrap();
        let started = ground.start(&["open", "my trace.json", "--port", "0"]);
        let link = started
            .wait_for_line("sa-profile: open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:");
        let (_, address) = link.split_once("127.0.0.1:").unwrap();
        let (port, name) = address.split_once('/').unwrap();
        assert_eq!(name, "my_trace.json");
        Serving {
            started,
            port: port.parse().unwrap(),
            body,
        }
    }

    fn connect(&self, method: &str, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        )
        .unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> Reply {
        let mut reply = Vec::new();
        self.connect(method, path, headers)
            .read_to_end(&mut reply)
            .unwrap();
        let end = reply
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(reply[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = head
            .lines()
            .skip(1)
            .map(str::to_lowercase)
            .collect::<Vec<_>>()
            .join("\n")
            + "\n";
        Reply {
            status,
            headers,
            body: reply[end + 4..].to_vec(),
        }
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.port)
    }

    fn fetch(&self) -> Reply {
        self.ask("GET", "/my_trace.json", &(self.host() + PERFETTO))
    }
}

#[test]
fn perfettos_page_gets_the_whole_trace_and_the_serving_ends() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 20 << 20);
    let head = serving.ask("HEAD", "/my_trace.json", &(serving.host() + PERFETTO));
    assert_eq!((head.status, head.body.len()), (200, 0));
    let reply = serving.fetch();
    assert_eq!(reply.status, 200);
    assert!(reply.body == serving.body, "{} bytes", reply.body.len());
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\n",
        "cache-control: no-cache\n",
        "content-length: 20971520\n",
    ] {
        assert!(
            reply.headers.contains(line) && head.headers.contains(line),
            "{line} in {reply:?}, {}",
            head.headers
        );
    }
    let Ended {
        code,
        stdout,
        stderr,
    } = serving.started.end();
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert!(stderr.ends_with("sa-profile: fetched\n"), "{stderr}");
}

#[test]
fn a_page_may_ask_before_it_fetches() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 100);
    let asked = format!(
        "{}{PERFETTO}Access-Control-Request-Private-Network: true\r\n",
        serving.host()
    );
    let reply = serving.ask("OPTIONS", "/my_trace.json", &asked);
    assert_eq!(reply.status, 204);
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\n",
        "access-control-allow-methods: get, head, options\n",
        "access-control-allow-private-network: true\n",
    ] {
        assert!(reply.headers.contains(line), "{line} in {reply:?}");
    }
}

#[test]
fn strangers_get_nothing() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 100);
    let host = serving.host();
    for (method, path, headers, status) in [
        (
            "GET",
            "/my_trace.json",
            "Host: evil.example:9001\r\n".to_owned(),
            403,
        ),
        ("GET", "/my_trace.json", String::new(), 403),
        (
            "GET",
            "/my_trace.json",
            format!("{host}Origin: https://evil.example\r\n"),
            403,
        ),
        (
            "GET",
            "/my_trace.json",
            format!("{host}Sec-Fetch-Site: cross-site\r\n"),
            403,
        ),
        ("GET", "/", host.clone() + PERFETTO, 404),
        ("GET", "/../../etc/passwd", host.clone() + PERFETTO, 404),
        ("GET", "/my%20trace.json", host.clone() + PERFETTO, 404),
        (
            "POST",
            "/my_trace.json",
            host.clone() + PERFETTO + "Content-Length: 0\r\n",
            405,
        ),
    ] {
        let reply = serving.ask(method, path, &headers);
        assert_eq!(reply.status, status, "{method} {path} {headers}");
        assert!(
            !reply.body.starts_with(b"0123") && !reply.headers.contains("allow-origin"),
            "{reply:?}"
        );
    }
    assert_eq!(serving.fetch().body, serving.body, "it still serves");
}

#[test]
fn half_a_fetch_is_none() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 64 << 20);
    let mut stream = serving.connect("GET", "/my_trace.json", &(serving.host() + PERFETTO));
    stream.read_exact(&mut [0; 1000]).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    assert!(serving.fetch().body == serving.body, "it still serves");
    assert_eq!(serving.started.end().code, Some(0));
}

#[test]
fn ctrl_c_ends_it() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 100);
    serving.started.signal("INT");
    assert_eq!(serving.started.end().code, Some(0));
}

#[test]
fn a_taken_port_and_a_missing_trace_are_said_plainly() {
    let ground = Ground::new();
    fs::write(ground.path("t.json"), "[]").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = ground.run(&["open", "t.json", "--port", &port]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.starts_with(&format!(
            "sa-profile: port {port} is taken, and ui.perfetto.dev loads from port 9001 only."
        )),
        "{}",
        ended.stderr
    );
    let ended = ground.run(&["open", "none.json"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr,
        "sa-profile: none.json: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_browser_is_started_where_there_is_a_screen() {
    let ground = Ground::new();
    fs::write(ground.path("t.json"), "[]").unwrap();
    let script = ground.path("browser");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\necho \"$1\" > '{}'\n",
            ground.path("opened").display()
        ),
    )
    .unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = ground.command(&["open", "t.json", "--port", "0"]);
    let started = Started::of(command.env("DISPLAY", ":0").env("BROWSER", &script));
    let opened = ground.path("opened");
    started
        .wait_until(|| fs::read_to_string(&opened).is_ok_and(|link| link.ends_with("/t.json\n")));
    started.signal("INT");
    started.end();
}

/// The one test that takes Perfetto's own port; where something else has it, the program says so.
#[test]
fn run_with_open_serves_what_it_recorded() {
    let ground = Ground::new();
    let started = ground.start(&[
        "run",
        "-d",
        "out",
        "--open",
        "--",
        &worker(),
        "one",
        "spans=3",
        "exit=6",
    ]);
    let line = started.wait_for_line("9001");
    if line.contains("is taken") {
        println!("SKIPPED run_with_open_serves_what_it_recorded: port 9001 is taken");
        return;
    }
    assert_eq!(
        line,
        "sa-profile: open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/trace.json"
    );
    let mut stream = TcpStream::connect("127.0.0.1:9001").unwrap();
    write!(
        stream,
        "GET /trace.json HTTP/1.1\r\nHost: localhost:9001\r\n{PERFETTO}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(
        reply.ends_with(&fs::read_to_string(ground.path("out/trace.json")).unwrap()),
        "{reply}"
    );
    assert_eq!(started.end().code, Some(6));
}
