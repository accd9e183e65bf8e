//! `sa-profile open`, fetched by a plain HTTP client: what a page of Perfetto's gets, and what nobody else does.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod client;
mod program;

use client::{Reply, Server};
use program::{Ground, Started};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

const PERFETTO: &str = "Origin: https://ui.perfetto.dev\r\n";

/// A program that serves a trace, and what it serves.
struct Serving {
    started: Started,
    server: Server,
    /// The path of the trace's address.
    path: String,
    body: Vec<u8>,
}

/// The port and the path in a link that a command printed.
fn address(line: &str) -> (u16, String) {
    let (_, address) = line.split_once("127.0.0.1:").unwrap();
    let (port, path) = address.split_once('/').unwrap();
    (port.parse().unwrap(), format!("/{path}"))
}

impl Serving {
    /// Serves `bytes` bytes as `my trace.json`, which other users may not read.
    fn start(ground: &Ground, bytes: usize) -> Serving {
        fs::set_permissions(ground.path("."), fs::Permissions::from_mode(0o700)).unwrap();
        let mut body = b"[{\"ph\":\"M\",\"name\":\"0123456789\"}".to_vec();
        body.resize(bytes - 1, b'\n');
        body.push(b']');
        fs::write(ground.path("my trace.json"), &body).unwrap();
        let started = ground.start(&["open", "my trace.json", "--port", "0"]);
        let link = started
            .wait_for_line("sa-profile: open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:");
        let (port, path) = address(&link);
        assert!(path.ends_with("/my_trace.json"), "{path}");
        Serving {
            started,
            server: Server(port),
            path,
            body,
        }
    }

    fn ask(&self, method: &str, headers: &str) -> Reply {
        self.server.ask(method, &self.path, headers)
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.server.0)
    }

    fn fetch(&self) -> Reply {
        self.ask("GET", &(self.host() + PERFETTO))
    }
}

#[test]
fn perfettos_page_gets_the_whole_trace_and_the_serving_ends() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 20 << 20);
    let head = serving.ask("HEAD", &(serving.host() + PERFETTO));
    assert_eq!((head.status, head.body.len()), (200, 0));
    let reply = serving.fetch();
    assert_eq!(reply.status, 200);
    assert!(reply.body == serving.body, "{} bytes", reply.body.len());
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\r\n",
        "cache-control: no-cache\r\n",
        "content-length: 20971520\r\n",
    ] {
        assert!(
            reply.head.contains(line) && head.head.contains(line),
            "{line} in {reply:?}, {}",
            head.head
        );
    }
    let ended = serving.started.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert!(ended.stderr.ends_with("sa-profile: fetched\n"));
}

#[test]
fn a_page_may_ask_before_it_fetches() {
    let ground = Ground::new();
    let serving = Serving::start(&ground, 100);
    let asked = format!(
        "{}{PERFETTO}Access-Control-Request-Private-Network: true\r\n",
        serving.host()
    );
    let reply = serving.ask("OPTIONS", &asked);
    assert_eq!(reply.status, 204);
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\r\n",
        "access-control-allow-methods: get, head, options\r\n",
        "access-control-allow-private-network: true\r\n",
    ] {
        assert!(reply.head.contains(line), "{line} in {reply:?}");
    }
}

#[test]
fn a_taken_port_and_a_missing_trace_are_said_plainly() {
    let ground = Ground::new();
    fs::write(ground.path("t.json"), "[]").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = ground.run(&["open", "t.json", "--port", &port]);
    assert_eq!(ended.code, Some(2));
    ended.says(&[&format!(
        "sa-profile: port {port} is taken, and ui.perfetto.dev loads from port 9001 only."
    )]);
    let ended = ground.run(&["open", "none.json"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.stderr,
        "sa-profile: none.json: No such file or directory (os error 2)\n"
    );
}

/// A trace that others may not read has a token in its link, and others can list the arguments of the browser.
#[test]
fn a_browser_is_started_where_there_is_a_screen() {
    let ground = Ground::new();
    fs::write(ground.path("t.json"), "[]").unwrap();
    fs::create_dir_all(ground.path("home/Downloads")).unwrap();
    let script = ground.path("browser");
    let opened = ground.path("opened");
    let text = "#!/bin/sh\ncase $1 in file://*) cat \"${1#file://}\";; esac > opened.1\necho \"$1\" >> opened.1\nmv opened.1 opened\n";
    fs::write(&script, text).unwrap();
    let mode = fs::Permissions::from_mode;
    fs::set_permissions(&script, mode(0o755)).unwrap();
    for (of_ground, is_private) in [(0o700, true), (0o755, false)] {
        fs::set_permissions(ground.path("."), mode(of_ground)).unwrap();
        let mut command = ground.command(&["open", "t.json", "--port", "0"]);
        command
            .env("HOME", ground.path("home"))
            .env_remove("XDG_CONFIG_HOME");
        let started = Started::of(command.env("DISPLAY", ":0").env("BROWSER", &script));
        started.wait_until(|| opened.exists());
        let line = started.wait_for_line("sa-profile: open https://ui.perfetto.dev/");
        let link = line.strip_prefix("sa-profile: open ").unwrap();
        let seen = fs::read_to_string(&opened).unwrap();
        let (_, path) = address(link);
        if is_private {
            let (page, argument) = seen.rsplit_once("file://").unwrap();
            assert!(page.contains(link) && path.len() > 40, "{page}");
            assert!(!argument.contains("http"), "{argument}");
            let file = std::path::Path::new(argument.trim_end());
            assert_eq!(file.parent(), Some(&*ground.path("home/Downloads")));
            let bits = fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(bits & 0o777, 0o600);
            started.signal("INT");
            started.end();
            assert!(!file.exists(), "{argument}");
        } else {
            assert_eq!((seen.trim_end(), path.as_str()), (link, "/t.json"));
        }
        fs::remove_file(&opened).unwrap();
    }
}

/// The one test that takes Perfetto's own port; where something else has it, the program says so.
#[test]
fn run_with_open_serves_what_it_recorded() {
    let ground = Ground::new();
    let words = "one spans=3 exit=6";
    let started = Started::of(&mut ground.recording("-d out --open", words));
    let line = started.wait_for_line("9001");
    if line.contains("is taken") {
        println!("SKIPPED run_with_open_serves_what_it_recorded: port 9001 is taken");
        return;
    }
    let (port, path) = address(&line);
    assert!(path.ends_with("/trace.json"), "{line}");
    let headers = format!("Host: localhost:9001\r\n{PERFETTO}");
    let reply = Server(port).ask("GET", &path, &headers);
    assert!(
        reply.body == fs::read(ground.path("out/trace.json")).unwrap(),
        "{reply:?}"
    );
    assert_eq!(started.end().code, Some(6));
}
