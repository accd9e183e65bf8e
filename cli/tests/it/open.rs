//! Fetches a trace from `sa-profile open` with a plain HTTP client: tests what Perfetto's page gets, and that no other page gets anything.

use crate::program::{Ended, Ground, Started};
use crate::serving::Serving;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use trace_merge::{Options, Output};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn perfettos_page_gets_the_whole_trace_and_the_serving_ends() {
    const BYTES: usize = 20 << 20;
    let ground = Ground::new();
    set_mode(&ground.path("."), 0o700);
    let mut body = b"[{\"ph\":\"M\",\"name\":\"0123456789\"}".to_vec();
    body.resize(BYTES - 1, b'\n');
    body.push(b']');
    fs::write(ground.path("my trace.json"), &body).unwrap();
    let serving = Serving::trace(&ground, "my trace.json");
    assert!(serving.path.ends_with("/my_trace.json"), "{}", serving.path);
    // A page may send a preflight request first.
    let asked = "Access-Control-Request-Private-Network: true\r\n";
    let asked = serving.headers.clone() + asked;
    let preflight = serving.send_request("OPTIONS", &serving.path, &asked);
    assert_eq!(preflight.status, 204);
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\r\n",
        "access-control-allow-methods: get, head, options\r\n",
        "access-control-allow-private-network: true\r\n",
    ] {
        assert!(preflight.head.contains(line), "{line} in {preflight:?}");
    }
    let head = serving.ask("HEAD", &serving.path);
    assert_eq!((head.status, head.body.len()), (200, 0));
    let reply = serving.ask("GET", &serving.path);
    assert_eq!(reply.status, 200);
    assert!(reply.body == body, "{} bytes", reply.body.len());
    for line in [
        "access-control-allow-origin: https://ui.perfetto.dev\r\n",
        "cache-control: no-cache\r\n",
        "content-length: 20971520\r\n",
    ] {
        assert!(
            reply.head.contains(line) && head.head.contains(line),
            "{line} in {}, {}",
            reply.head,
            head.head
        );
    }
    let ended = serving.started.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert!(ended.stderr.ends_with("sa-profile: fetched\n"));
}

/// Perfetto shows the whole trace if it is asked for a time outside it.
#[test]
fn a_trace_is_shown_from_its_first_request_on_unless_another_time_is_asked_for() {
    let ground = Ground::new();
    let event = r#"{"ph":"X","pid":1,"tid":1,"ts":2,"dur":7,"name":"n"}"#;
    let trace = |name: &str, view: &str| {
        let head = format!(r#"{{"otherData":{{"tool":"trace-merge"{view}}},"traceEvents":"#);
        fs::write(ground.path(name), format!("{head}[\n{event}\n]}}")).unwrap();
    };
    trace("unread.json", "");
    trace(
        "t.json",
        r#","view":{"begin_ns":2000,"end_ns":9000,"serving_ns":[4000,6000],"expanded":["a b"]}"#,
    );
    for (words, shown) in [
        ("t.json", "&visStart=4000&visEnd=6000"),
        ("t.json --at 3us --for 1us", "&visStart=5000&visEnd=6000"),
        ("t.json --at 3us", "&visStart=5000&visEnd=9000"),
        ("t.json --from 0s --to 1us", "&visStart=2000&visEnd=3000"),
        ("t.json --from 1us", "&visStart=3000&visEnd=9000"),
        ("t.json --at 7us", ""),
        ("unread.json --from 1us", "&visStart=3000&visEnd=9000"),
        ("unread.json", ""),
    ] {
        let words = format!("open --port 0 {words}");
        let words: Vec<_> = words.split_whitespace().collect();
        let serving = Serving::from_open(ground.start(&words));
        let (_, options) = serving.link.split_once(".json").unwrap();
        let (found, commands) = options.split_once("&startup").unwrap_or((options, ""));
        assert_eq!(found, shown, "{words:?}");
        let is_expanded = commands.contains("ExpandTracksByRegex") && commands.contains("a%20b");
        assert_eq!(is_expanded, words.contains(&"t.json"), "{commands}");
        serving.started.wait_for_line("Ctrl-C ends it");
        serving.started.signal("INT");
        let said = serving
            .started
            .end()
            .stderr
            .contains("is outside the trace");
        assert_eq!(said, words.contains(&"7us"), "{words:?}");
    }
    let refused = ground.run(&["open", "t.json", "--at", "2026-11-22T07:30:00Z"]);
    refused.says(&["expected a time from the start of the trace such as 12.5s"]);
}

#[test]
fn a_trace_that_nobody_reported_on_is_served_with_its_findings() {
    let ground = Ground::new();
    let fixture = "/../report/tests/fixtures/serving.json";
    let options = Options {
        output: Output::File(ground.path("t.json")),
        ..Options::new([PathBuf::from(
            env!("CARGO_MANIFEST_DIR").to_owned() + fixture,
        )])
    };
    trace_merge::merge(&options).unwrap();
    let serving = Serving::trace(&ground, "t.json");
    let served = String::from_utf8(serving.ask("GET", &serving.path).body).unwrap();
    assert_eq!(serving.started.end().code, Some(0));
    let file = fs::read_to_string(ground.path("t.json")).unwrap();
    let added = served.strip_prefix(file.strip_suffix("\n]}\n").unwrap());
    let added: Vec<&str> = added.unwrap().split(",\n").skip(1).collect();
    assert!(added.len() > 4, "{added:?}");
    assert!(added.iter().all(|line| line.contains("sa_findings")));
    let trace: Value = serde_json::from_str(&served).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let (recorded, added) = events.split_at(events.len() - added.len());
    let is_added = |event: &Value| event["pid"] == added[0]["pid"];
    assert!(added.iter().all(is_added) && !recorded.iter().any(is_added));
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
    let missing = Ended::refusal("none.json: No such file or directory (os error 2)");
    assert_eq!(ground.run(&["open", "none.json"]), missing);
}

/// The link of a trace that others may not read contains a token, and others can list the arguments of the browser.
#[test]
fn a_browser_is_started_where_there_is_a_screen() {
    let ground = Ground::new();
    fs::write(ground.path("t.json"), "[]").unwrap();
    fs::create_dir_all(ground.path("home/Downloads")).unwrap();
    let opened = ground.path("opened");
    ground.write_script(
        "browser",
        "case $1 in file://*) cat \"${1#file://}\";; esac > opened.1\necho \"$1\" >> opened.1\nmv opened.1 opened",
    );
    for (of_ground, is_private) in [(0o700, true), (0o755, false)] {
        set_mode(&ground.path("."), of_ground);
        let mut command = ground.command(&["open", "t.json", "--port", "0"]);
        command
            .env("HOME", ground.path("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("BROWSER", ground.path("browser"));
        let serving = Serving::from_open(Started::spawn(command.env("DISPLAY", ":0")));
        serving.started.wait_until(|| opened.exists());
        let (link, path) = (serving.link.as_str(), serving.path.as_str());
        let text = fs::read_to_string(&opened).unwrap();
        if is_private {
            let (page, argument) = text.rsplit_once("file://").unwrap();
            assert!(page.contains(link) && path.len() > 40, "{page}");
            assert!(!argument.contains("http"), "{argument}");
            let file = Path::new(argument.trim_end());
            assert_eq!(file.parent(), Some(&*ground.path("home/Downloads")));
            let bits = fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(bits & 0o777, 0o600);
            serving.started.wait_for_line("Ctrl-C ends it");
            serving.started.signal("INT");
            serving.started.end();
            assert!(!file.exists(), "{argument}");
        } else {
            assert_eq!((text.trim_end(), path), (link, "/t.json"));
        }
        fs::remove_file(&opened).unwrap();
    }
}

/// This is the only test that uses Perfetto's own port. If another program has it, the test is skipped with a message.
#[test]
fn run_with_open_serves_what_it_recorded() {
    let ground = Ground::new();
    let words = "one spans=3 exit=6";
    let started = Started::spawn(&mut ground.recording("-d out --open", words));
    if started.wait_for_line("9001").contains("is taken") {
        println!("SKIPPED run_with_open_serves_what_it_recorded: port 9001 is taken");
        return;
    }
    let serving = Serving::from_open(started);
    assert!(serving.path.ends_with("/trace.json"), "{}", serving.path);
    let reply = serving.ask("GET", &serving.path);
    let trace = fs::read(ground.path("out/trace.json")).unwrap();
    assert!(reply.body == trace, "{reply:?}");
    assert_eq!(serving.started.end().code, Some(6));
}
