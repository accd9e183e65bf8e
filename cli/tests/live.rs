//! `sa-profile serve` and `watch` on processes that really record, and clients of every kind.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod program;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use program::{Ground, PROGRAM, Started, worker};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Shows a page in a browser.
const SHOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/show");

/// A program that serves a run.
struct Serving {
    started: Started,
    port: u16,
}

/// An answer: its status, its head in lower case, its body.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Serving {
    fn start(ground: &Ground, words: &[&str]) -> Serving {
        let words = [&["serve", "--listen", "127.0.0.1:0"], words, &["out"]].concat();
        let started = ground.start(&words);
        let line = started.wait_for_line("sa-profile: serving http://127.0.0.1:");
        let (_, rest) = line.split_once("127.0.0.1:").unwrap();
        let (port, _) = rest.split_once('/').unwrap();
        let port = port.parse().unwrap();
        Serving { started, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// What is answered to some bytes.
    fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // it may be refused before all of it is out
        reply(&mut stream).unwrap()
    }

    fn get(&self, target: &str) -> Reply {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    fn stats(&self) -> Value {
        let found = self.get("/stats");
        match found.status {
            200 => serde_json::from_str(&found.body).unwrap(),
            _ => Value::Null, // the run was not looked at yet
        }
    }

    /// What Prometheus takes for sums: each with its labels.
    fn sums(&self) -> BTreeMap<String, f64> {
        let metrics = self.get("/metrics").body;
        let samples = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        let is_sum = |sample: &str| {
            let name = sample.split('{').next().unwrap_or_default();
            let ends = ["_total", "_bucket", "_sum", "_count"];
            ends.into_iter().any(|end| name.ends_with(end))
        };
        let sums = samples.filter(|(sample, _)| is_sum(sample));
        sums.filter_map(|(sample, value)| Some((sample.to_owned(), value.parse().ok()?)))
            .collect()
    }

    /// The first figures of which something is so.
    fn stats_when(&self, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        self.started.wait_until(|| {
            last = self.stats();
            is_so(&last)
        });
        last
    }
}

fn reply(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => {}
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Reply {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_lowercase(),
        body: body.to_owned(),
    })
}

/// Starts processes that record into `out`.
fn record(ground: &Ground, names: &[&str], words: &[&str]) -> Vec<Started> {
    let start = |name: &&str| {
        let mut command = ground.plain(&worker());
        command.arg(name).args(words);
        command.env("SA_PROFILE_DIR", ground.path("out"));
        Started::of(&mut command)
    };
    fs::create_dir_all(ground.path("out")).unwrap();
    names.iter().map(start).collect()
}

/// The figures of a report and those that are served must be the same.
fn assert_same(stats: &Value, ground: &Ground) {
    let report = ground.run(&["report", "--json", "out"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let (served, reported) = (&stats["requests"], &report["requests"]);
    for key in ["ok", "aborted", "failed"] {
        assert_eq!(served[key], reported[key], "{key}");
    }
    assert_eq!(stats["unfinished"], reported["unfinished"]);
    for key in [
        "ttft",
        "engine_ttft",
        "tpot",
        "itl",
        "e2e",
        "queue",
        "prefill",
        "decode",
    ] {
        let n = served[key]["n"].as_u64().unwrap();
        assert_eq!(n, reported[key]["n"].as_u64().unwrap(), "{key}");
        let counts: u64 = served[key]["counts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|count| count.as_u64().unwrap())
            .sum();
        assert_eq!(counts, n, "{key}");
        let sum_ns = served[key]["sum_ns"].as_f64().unwrap();
        let mean_ns = reported[key]["mean_ns"].as_f64().unwrap();
        let off = (sum_ns - mean_ns * n as f64).abs();
        assert!(off <= 1.0 + 1e-9 * sum_ns, "{key}: {sum_ns} {mean_ns} {n}");
    }
    let tokens = |of: &str| -> u64 {
        let requests = report["request"].as_array().unwrap().iter();
        requests.filter_map(|one| one[of].as_u64()).sum()
    };
    assert_eq!(served["output_tokens"], tokens("output_tokens"));
    assert_eq!(served["prompt_tokens"], tokens("prompt_tokens"));
    let names = report["names"].as_array().unwrap();
    let told = stats["names"].as_array().unwrap();
    assert!(!told.is_empty());
    for name in told {
        let is_it =
            |one: &&Value| one["name"] == name["name"] && one["category"] == name["category"];
        let one = names.iter().find(is_it).unwrap();
        assert_eq!(name["ncall"], one["ncall"], "{name}");
        assert_eq!(name["max_ns"], one["duration"]["max_ns"], "{name}");
        let total_ns =
            one["duration"]["mean_ns"].as_f64().unwrap() * one["ncall"].as_f64().unwrap();
        assert!(
            (name["total_ns"].as_f64().unwrap() - total_ns).abs() < 1.0,
            "{name}"
        );
    }
    assert_eq!(stats["recorded"]["events"], report["recorded"]["events"]);
}

/// The figures while processes live, after one was killed, and after all have ended.
#[test]
fn the_figures_are_those_of_the_report() {
    let ground = Ground::new();
    fs::create_dir_all(ground.path("out")).unwrap();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["state"] == "waiting");
    let go_on = ground.path("go-on").display().to_string();
    let until = format!("until={go_on}");
    let mut workers = record(
        &ground,
        &["api", "core"],
        &["threads=2", "requests=200", &until, "requests=30"],
    );
    workers.extend(record(
        &ground,
        &["doomed"],
        &[
            "threads=2",
            "requests=40",
            &until,
            "open",
            "requests=3",
            "kill",
        ],
    ));
    let live = serving.stats_when(|stats| stats["requests"]["arrived"] == 440);
    assert_eq!(
        (&live["state"], &live["is_final"]),
        (&"live".into(), &false.into())
    );
    assert_eq!(live["recorded"]["alive"], 3);
    assert_eq!(live["engine"].as_array().unwrap().len(), 3);
    assert_eq!(live["engine"][0]["kv_used"], 0.125);
    assert_same(&live, &ground);
    let before = serving.sums();
    assert!(before["sa_profile_events_total"] > 0.0, "{before:?}");
    fs::write(&go_on, "").unwrap();
    for worker in workers {
        worker.end();
    }
    let last = serving.stats_when(|stats| stats["is_final"] == true);
    assert_eq!(last["state"], "ended");
    assert_eq!(
        (&last["recorded"]["ended"], &last["recorded"]["died"]),
        (&2.into(), &1.into())
    );
    assert_eq!(last["requests"]["arrived"], 503);
    let after = serving.sums();
    for (sample, value) in before {
        assert!(after[&sample] >= value, "{sample}: {value}");
    }
    assert_eq!(after["sa_profile_e2e_request_latency_seconds_count"], 500.0);
    assert_same(&last, &ground);
    let watched = ground.run(&["watch", "out"]);
    assert_eq!(watched.code, Some(0));
    assert!(
        watched.stdout.contains("503 requests ended"),
        "{}",
        watched.stdout
    );
    let watched = ground.run(&["watch", "--once", "out"]).stdout;
    assert!(
        watched.contains("has ended; these are the figures of its report"),
        "{watched}"
    );
    assert!(watched.contains("http.completions"), "{watched}");
    serving.started.signal("INT");
    assert_eq!(serving.started.end().code, Some(0));
}

/// Eight processes as fast as they can, and 64 with `SA_PROFILE_FULL=1`.
#[test]
fn the_figures_of_many_processes_at_full_speed_are_those_of_the_report() {
    let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
    let (processes, requests) = if is_full { (64, 2_000) } else { (8, 500) };
    let names: Vec<String> = (0..processes).map(|nth| format!("engine{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ground = Ground::new();
    fs::create_dir_all(ground.path("out")).unwrap();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["state"] == "waiting");
    let go_on = ground.path("go-on").display().to_string();
    let (until, rest) = (format!("until={go_on}"), format!("requests={requests}"));
    let words = ["threads=2", "requests=1", &until, &rest];
    let workers = record(&ground, &names, &words);
    serving.stats_when(|stats| stats["recorded"]["alive"] == processes);
    fs::write(&go_on, "").unwrap();
    for worker in workers {
        worker.end();
    }
    let last = serving.stats_when(|stats| stats["is_final"] == true);
    assert_eq!(last["recorded"]["ended"], processes);
    assert_eq!(last["requests"]["arrived"], processes * (requests + 1));
    assert_same(&last, &ground);
}

/// A browser that opens a page and waits until it shows one text after the other; nothing (said loudly) where there is none.
#[expect(clippy::print_stderr, reason = "it says where it does not run")]
fn browser(test: &str, address: &str, texts: &[&str]) -> Option<Started> {
    let started = Started::of(Command::new(SHOW).arg(address).args(texts));
    let line = started.wait_for_line("show: ");
    if line.contains("unavailable") {
        eprintln!("SKIPPED {test}: {line}");
        return None;
    }
    Some(started)
}

/// What it saw, for each text.
fn seen(started: Started) -> Vec<Value> {
    let ended = started.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stdout.lines();
    let lines = lines.map(|line| serde_json::from_str(line).unwrap());
    let seen: Vec<Value> = lines.collect();
    for of in &seen {
        assert_eq!(of["errors"], serde_json::json!([]), "{of}");
    }
    seen
}

/// A page that stays open while processes record and end, and one that needs a token.
#[test]
fn alone_the_page_goes_with_the_run() {
    let test = "alone_the_page_goes_with_the_run";
    let ground = Ground::new();
    let go_on = ground.path("go-on").display().to_string();
    let until = format!("until={go_on}");
    let workers = record(
        &ground,
        &["api", "core"],
        &["threads=2", "requests=20", &until, "requests=3"],
    );
    let serving = Serving::start(&ground, &[]);
    let ended = |stats: &Value| {
        let of = |key: &str| stats["requests"][key].as_u64().unwrap_or_default();
        of("ok") + of("aborted") + of("failed")
    };
    serving.stats_when(|stats| ended(stats) == 40);
    let address = format!("http://127.0.0.1:{}/", serving.port);
    let texts = ["It goes on.", "these are the figures of its report"];
    let Some(started) = browser(test, &address, &texts) else {
        return;
    };
    fs::write(&go_on, "").unwrap();
    for worker in workers {
        worker.end();
    }
    let seen_of_both = seen(started);
    let last = serving.stats();
    assert_eq!(last["is_final"], true);
    for (of, requests, alive) in [(&seen_of_both[0], 40, 2), (&seen_of_both[1], 46, 0)] {
        let text = of["text"].as_str().unwrap();
        for words in [
            format!("{requests}\nrequests ended"),
            format!("{alive} of 2\nprocesses alive"),
            "http.completions".to_owned(),
        ] {
            assert!(text.contains(&words), "{words}: {text}");
        }
    }
    let token = "a-token-of-16-signs";
    fs::write(ground.path("token"), token).unwrap();
    let token_file = ground.path("token").display().to_string();
    let serving = Serving::start(&ground, &["--token-file", &token_file]);
    serving.started.wait_until(|| {
        let found = serving.get(&format!("/?token={token}"));
        found.status == 200
    });
    let address = format!("http://127.0.0.1:{}/", serving.port);
    let with_token = format!("{address}?token={token}");
    let texts = ["46\nrequests ended"];
    let Some(started) = browser(test, &with_token, &texts) else {
        return;
    };
    let seen = seen(started);
    assert_eq!(
        seen[0]["address"], address,
        "the token stays in the address"
    );
}

#[test]
fn a_watch_of_a_run_that_goes_on_ends_with_a_signal() {
    let ground = Ground::new();
    let workers = record(&ground, &["api"], &["requests=9", "sleep=60000"]);
    let watch = ground.start(&["watch", "out"]);
    std::thread::sleep(Duration::from_millis(2_500));
    watch.signal("INT");
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.lines().count() >= 2, "{}", ended.stdout);
    drop(workers);
}

/// Nothing in the run's directory changes.
#[test]
fn a_run_is_left_as_it_is() {
    let ground = Ground::new();
    for worker in record(&ground, &["a", "b"], &["requests=20", "open", "kill"]) {
        worker.end();
    }
    let files = || {
        let mut all: Vec<_> = fs::read_dir(ground.path("out/fragments"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    };
    let before = files();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    assert_eq!(files(), before);
    assert!(!ground.path("out/trace.json").exists());
}

#[test]
fn what_is_malformed_or_not_there_is_refused() {
    let ground = Ground::new();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    let host = "Host: localhost\r\n\r\n";
    let long = "x".repeat(100_000);
    for (text, status) in [
        (format!("GET /stats HTTP/1.1\r\n{host}"), 200),
        (format!("GET /nothing HTTP/1.1\r\n{host}"), 404),
        (format!("POST /stats HTTP/1.1\r\n{host}"), 405),
        (format!("GET /{long} HTTP/1.1\r\n{host}"), 414),
        (format!("GET / HTTP/1.1\r\nx: {long}\r\n{host}"), 431),
        (format!("{long}\r\n\r\n"), 414),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            403,
        ),
        ("hello\r\n\r\n".to_owned(), 400),
        ("\0\0\0\0\r\n\r\n".to_owned(), 400),
    ] {
        let found = serving.send(text.as_bytes());
        assert_eq!(found.status, status, "{:.60}: {found:?}", text);
    }
    // A request that ends in its middle is answered too, if anybody listens.
    let mut half = serving.connect();
    half.write_all(b"GET /stats HTT").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert!(reply(&mut half).is_none());
    let page = serving.get("/");
    assert!(
        page.head
            .contains("content-security-policy: default-src 'none'"),
        "{}",
        page.head
    );
    assert!(page.body.contains("fetch('stats'"));
    assert!(!page.body.contains("http://") || !page.body.contains("<script src"));
    let head = serving.send(format!("HEAD /stats HTTP/1.1\r\n{host}").as_bytes());
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(!head.head.contains("content-length: 0"), "{}", head.head);
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let ground = Ground::new();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    let mut slow: Vec<TcpStream> = (0..200).map(|_| serving.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /sta").unwrap();
    }
    // These ask and never read.
    let deaf: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = serving.connect();
            let asked = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(asked).unwrap();
            stream
        })
        .collect();
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(serving.get("/stats").status, 200);
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    let told = reply(&mut slow[0]).unwrap();
    assert_eq!(told.status, 408);
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "{:?}",
        start.elapsed()
    );
    drop((slow, deaf));
}

#[test]
fn a_thousand_clients_at_once_are_answered() {
    let ground = Ground::new();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(4_096), hard).unwrap();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    let ask = |_| {
        let mut stream = serving.connect();
        let request = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).unwrap();
        stream
    };
    // Nobody reads before all have asked.
    let mut streams: Vec<TcpStream> = (0..1_000).map(ask).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        let found = reply(stream).map(|found| found.status);
        assert_eq!(found, Some(200), "{number}");
    }
    assert_eq!(serving.get("/stats").status, 200);
    drop(streams);
}

#[test]
fn others_need_a_token() {
    let ground = Ground::new();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let refused = ground.run(&["serve", "--listen", "0.0.0.0:0", "out"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("expected --token-file FILE, found none"),
        "{}",
        refused.stderr
    );
    fs::write(ground.path("short"), "short\n").unwrap();
    let refused = ground.run(&[
        "serve",
        "--token-file",
        "short",
        "--listen",
        "127.0.0.1:0",
        "out",
    ]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("short: expected a token of 16"),
        "{}",
        refused.stderr
    );
    fs::write(ground.path("token"), "0123456789-abcdef\n").unwrap();
    let started = ground.start(&[
        "serve",
        "--token-file",
        "token",
        "--listen",
        "0.0.0.0:0",
        "out",
    ]);
    let line = started.wait_for_line("serving http://0.0.0.0:");
    let port = line.split(':').nth(3).unwrap().split('/').next().unwrap();
    let serving = Serving {
        port: port.parse().unwrap(),
        started,
    };
    let status = |target: &str, header: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nHost: any.name\r\n{header}\r\n");
        serving.send(text.as_bytes()).status
    };
    let right = "Authorization: Bearer 0123456789-abcdef\r\n";
    serving
        .started
        .wait_until(|| status("/stats", right) == 200);
    assert_eq!(status("/stats", ""), 401);
    assert_eq!(
        status("/stats", "Authorization: Bearer 0123456789-abcdeg\r\n"),
        401
    );
    assert_eq!(status("/stats?token=0123456789-abcdef", ""), 401);
    assert_eq!(status("/?token=0123456789-abcdef", ""), 200);
}

/// What `promtool check metrics` asks of names and types, on what Prometheus' own parser for Python reads.
const CHECK: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families
UNITS = ("s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d")
families = list(text_string_to_metric_families(sys.stdin.read()))
assert len(families) > 30, len(families)
assert len({family.name for family in families}) == len(families)
for family in families:
    name, kind = family.name, family.type
    assert family.documentation, name
    assert kind in ("counter", "gauge", "histogram"), (name, kind)
    assert name == name.lower() and ":" not in name, name
    assert not any(word in name for word in ("milli", "_ms", "_ns", "minutes", "percent")), name
    assert not name.endswith(("_count", "_sum", "_bucket", "_total")), name
    assert not name.endswith(tuple("_" + unit for unit in UNITS)), name
    assert not any(word in name.split("_") for word in ("counter", "gauge", "histogram", "summary")), name
    seen = set()
    for sample in family.samples:
        labels = tuple(sorted(sample.labels.items()))
        assert (sample.name, labels) not in seen, (sample.name, labels)
        seen.add((sample.name, labels))
        assert all(label == label.lower() for label in sample.labels), sample.labels
        assert "quantile" not in sample.labels and ("le" in sample.labels) == sample.name.endswith("_bucket"), sample
        if kind == "counter":
            assert sample.name == name + "_total", sample.name
            assert sample.value >= 0, sample
    if kind == "histogram":
        buckets = [sample for sample in family.samples if sample.name == name + "_bucket"]
        bounds = [float(sample.labels["le"]) for sample in buckets]
        counts = [sample.value for sample in buckets]
        assert bounds == sorted(bounds) and bounds[-1] == float("inf"), bounds
        assert counts == sorted(counts), counts
        count = [sample.value for sample in family.samples if sample.name == name + "_count"]
        assert count == [counts[-1]], (name, count)
        assert any(sample.name == name + "_sum" for sample in family.samples), name
by_name = {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}
print(int(by_name["sa_profile_time_to_first_token_seconds_count"]), int(by_name["sa_profile_output_tokens_total"]))
names = [sample.labels["name"] for family in families for sample in family.samples if sample.name == "sa_profile_slices_total"]
print(len(names))
"#;

/// A Python with Prometheus' parser: that of the Python package's tests, or the system's.
fn python() -> Option<String> {
    let target = Path::new(PROGRAM).ancestors().nth(2).unwrap();
    let of_tests = target.join("python/venv/bin/python").display().to_string();
    [of_tests, "python3".to_owned()].into_iter().find(|python| {
        let import = ["-c", "import prometheus_client.parser"];
        let tried = Command::new(python)
            .args(import)
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    })
}

#[test]
fn prometheus_reads_the_metrics() {
    let ground = Ground::new();
    record(&ground, &["a \"quoted\\ name"], &["requests=50"])
        .remove(0)
        .end();
    let serving = Serving::start(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    let metrics = serving.get("/metrics");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8\r\n";
    assert!(metrics.head.contains(kind), "{}", metrics.head);
    assert!(
        metrics.body.contains(r#"engine="a \"quoted\\ name""#),
        "{}",
        metrics.body
    );
    let Some(python) = python() else {
        eprintln!("SKIPPED prometheus_reads_the_metrics: no Python has prometheus_client");
        return;
    };
    let mut check = Command::new(python)
        .args(["-c", CHECK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = check.stdin.take().unwrap();
    stdin.write_all(metrics.body.as_bytes()).unwrap();
    drop(stdin);
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", metrics.body);
    // 50 requests of 1, 2, 3 and 4 tokens in turn, and the two names of their spans.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "50 123\n2\n");
}
