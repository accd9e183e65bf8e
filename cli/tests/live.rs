//! `sa-profile serve` and `watch` on processes that really record, and clients of every kind.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod client;
mod program;

use client::{Reply, Server};
use program::{Ground, PROGRAM, Started};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Shows a page in a browser.
const SHOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/show");

/// A program that serves a run.
struct Serving {
    started: Started,
    server: Server,
    /// The page's address, with the token if there is one.
    page: String,
    /// The header with the token.
    authorization: String,
}

impl Serving {
    fn start(ground: &Ground, words: &[&str]) -> Serving {
        let words = [&["serve", "--listen", "127.0.0.1:0"], words, &["out"]].concat();
        Serving::of(ground.start(&words), "127.0.0.1")
    }

    fn of(started: Started, host: &str) -> Serving {
        let line = started.wait_for_line(&format!("sa-profile: serving http://{host}:"));
        let mut words = line.split(' ');
        let page = words.find(|word| word.starts_with("http")).unwrap();
        let (_, address) = page.rsplit_once(':').unwrap();
        let (port, target) = address.split_once('/').unwrap();
        let authorization = match target.strip_prefix("?token=") {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        Serving {
            server: Server(port.parse().unwrap()),
            page: page.to_owned(),
            authorization,
            started,
        }
    }

    fn get(&self, target: &str) -> Reply {
        let headers = format!("Host: localhost\r\n{}", self.authorization);
        self.server.ask("GET", target, &headers)
    }

    fn stats(&self) -> Value {
        let found = self.get("/stats");
        match found.status {
            200 => serde_json::from_slice(&found.body).unwrap(),
            _ => Value::Null, // the run was not looked at yet
        }
    }

    /// What Prometheus takes for sums: each with its labels.
    fn sums(&self) -> BTreeMap<String, f64> {
        let metrics = self.get("/metrics").text();
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

/// Starts processes that record into `out`.
fn record(ground: &Ground, names: &[&str], words: &[&str]) -> Vec<Started> {
    let start = |name: &&str| Started::of(&mut ground.worker(&[&[*name], words].concat()));
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
    for key in "ttft engine_ttft tpot itl e2e queue prefill decode".split(' ') {
        let n = served[key]["n"].as_u64().unwrap();
        assert_eq!(n, reported[key]["n"].as_u64().unwrap(), "{key}");
        let counts = served[key]["counts"].as_array().unwrap().iter();
        let counts: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(counts, n, "{key}");
        let sum_ns = served[key]["sum_ns"].as_f64().unwrap();
        let mean_ns = reported[key]["mean_ns"].as_f64().unwrap();
        let off = (sum_ns - mean_ns * n as f64).abs();
        assert!(off <= 1.0 + 1e-9 * sum_ns, "{key}: {sum_ns} {mean_ns} {n}");
        for quantile in ["p50_ns", "p90_ns", "p99_ns"] {
            let exact = reported[key][quantile].as_f64().unwrap();
            let live = served[key][quantile].as_f64().unwrap_or_default();
            assert!(
                (live - exact).abs() <= 0.01 * exact,
                "{key}: {live} {exact}"
            );
        }
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
        let is_job =
            |one: &&Value| one["name"] == name["name"] && one["category"] == name["category"];
        let one = names.iter().find(is_job).unwrap();
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
    let words = ["threads=2", "requests=200", &until, "requests=30"];
    let mut workers = record(&ground, &["api", "core"], &words);
    let words = ["threads=2", "requests=40", &until, "open", "requests=3"];
    let words = [&words[..], &["kill"]].concat();
    workers.extend(record(&ground, &["doomed"], &words));
    let live = serving.stats_when(|stats| stats["requests"]["arrived"] == 440);
    assert!(live["state"] == "live" && live["is_final"] == false);
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
    assert_eq!(last["recorded"]["ended"], 2);
    assert_eq!(last["recorded"]["died"], 1);
    assert_eq!(last["requests"]["arrived"], 503);
    let after = serving.sums();
    for (sample, value) in before {
        assert!(after[&sample] >= value, "{sample}: {value}");
    }
    assert_eq!(after["sa_profile_e2e_request_latency_seconds_count"], 500.0);
    assert_same(&last, &ground);
    let watched = ground.run(&["watch", "out"]);
    assert_eq!(watched.code, Some(0));
    assert!(watched.stdout.contains("503 requests ended"), "{watched:?}");
    let watched = ground.run(&["watch", "--once", "out"]).stdout;
    let ended = "has ended; these are the figures of its report";
    assert!(watched.contains(ended), "{watched}");
    assert!(watched.contains("http.completions"), "{watched}");
    // Nothing in the run's directory was settled, not even the ring of the process that was killed.
    assert!(!ground.path("out/trace.json").exists());
    let files = fs::read_dir(ground.path("out/fragments"))
        .unwrap()
        .flatten();
    let is_ring = |file: &fs::DirEntry| file.path().extension().is_some_and(|end| end == "ring");
    assert_eq!(files.filter(is_ring).count(), 1);
    let policy = "content-security-policy: default-src 'none'";
    assert!(serving.get("/").head.contains(policy));
    serving.started.signal("INT");
    assert_eq!(serving.started.end().code, Some(0));
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

/// A page that stays open while processes record and end.
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
    let address = serving.page.clone();
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
}

/// A server that lives and does nothing is idle: nothing counts back from its last event.
#[test]
fn issue_47_an_idle_server_looks_idle() {
    let ground = Ground::new();
    let words = ["threads=2", "requests=9", "sleep=120000"];
    let workers = record(&ground, &["api"], &words);
    let serving = Serving::start(&ground, &[]);
    let idle = serving.stats_when(|stats| {
        let silent_ns = stats["no_event_for_ns"].as_u64();
        silent_ns > Some(13_000_000_000)
    });
    assert_eq!(idle["state"], "live");
    assert!(idle["requests"]["ok"].as_u64() > Some(0), "{idle}");
    assert_eq!(idle["last_10_s"]["requests_per_s"], 0.0);
    let watched = ground.run(&["watch", "--once", "out"]).stdout;
    assert!(watched.contains("silent    no event for "), "{watched}");
    drop(workers);
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

#[test]
fn others_need_a_token() {
    let ground = Ground::new();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let refused = ground.run(&["serve", "--listen", "0.0.0.0:0", "out"]);
    assert_eq!(refused.code, Some(2));
    refused.says(&["expected --token-file FILE, found none"]);
    fs::write(ground.path("short"), "short\n").unwrap();
    let refused = ground.run(&["serve", "--token-file", "short", "out"]);
    assert_eq!(refused.code, Some(2));
    refused.says(&["short: expected a token of 16"]);
    fs::write(ground.path("token"), "0123456789-abcdef\n").unwrap();
    let mut command = ground.command(&["serve", "--token-file", "token"]);
    command.args(["--listen", "0.0.0.0:0", "out"]);
    let serving = Serving::of(Started::of(&mut command), "0.0.0.0");
    assert!(!serving.page.contains("0123"), "{}", serving.page);
    let right = "Authorization: Bearer 0123456789-abcdef\r\n";
    assert_answers(&serving, "any.name", right, "0123456789-abcdef");
}

/// Checks that only clients with the token get the figures.
fn assert_answers(serving: &Serving, host: &str, right: &str, token: &str) {
    let status = |target: &str, header: &str| {
        let headers = format!("Host: {host}\r\n{header}");
        serving.server.ask("GET", target, &headers).status
    };
    serving
        .started
        .wait_until(|| status("/stats", right) == 200);
    let wrong = right.replace(token, &"x".repeat(token.len()));
    for (target, header, expected) in [
        ("/stats", "", 401),
        ("/stats", wrong.as_str(), 401),
        (&format!("/stats?token={token}"), "", 401),
        ("/metrics", "", 401),
        ("/nothing", "", 401),
        ("/", "", 401),
        (&format!("/?token={token}"), "", 200),
        ("/metrics", right, 200),
    ] {
        assert_eq!(status(target, header), expected, "{target} {header}");
    }
}

/// On 127.0.0.1 every user of the machine can connect.
#[test]
fn a_run_that_others_may_not_read_has_a_token_on_this_machine_too() {
    let ground = Ground::new();
    record(&ground, &["api"], &["requests=5"]).remove(0).end();
    let serving = Serving::start(&ground, &[]);
    let (_, token) = serving.page.split_once("/?token=").unwrap();
    assert!(token.len() >= 32, "{token}");
    assert_answers(&serving, "127.0.0.1", &serving.authorization, token);
    assert_ne!(Serving::start(&ground, &[]).page, serving.page);
    let ended = {
        serving.started.signal("INT");
        serving.started.end()
    };
    assert_eq!(ended.stderr.matches(token).count(), 1, "{}", ended.stderr);
    assert_eq!(Serving::start(&ground, &["--no-token"]).authorization, "");
    fs::write(ground.path("token"), "0123456789-abcdef\n").unwrap();
    let serving = Serving::start(&ground, &["--token-file", "token"]);
    assert_eq!(serving.authorization, "");
    assert_eq!(serving.get("/stats").status, 401);
    // Everybody may come to the fragments, and read none.
    let mode = fs::Permissions::from_mode;
    for (path, bits) in [(".", 0o755), ("out", 0o755), ("out/fragments", 0o755)] {
        fs::set_permissions(ground.path(path), mode(bits)).unwrap();
    }
    assert_ne!(Serving::start(&ground, &[]).authorization, "");
}

/// A folder of fragments keeps the mode that the first run gave it.
#[test]
fn issue_47_a_private_run_after_a_public_one_needs_a_token() {
    let ground = Ground::new();
    let mode = fs::Permissions::from_mode;
    fs::set_permissions(ground.path("."), mode(0o755)).unwrap();
    let run = |name: &str, bits: &str| {
        fs::create_dir_all(ground.path("out")).unwrap();
        fs::set_permissions(ground.path("out"), mode(0o755)).unwrap();
        let mut command = ground.worker(&[name, "requests=5"]);
        Started::of(command.env("SA_PROFILE_MODE", bits)).end();
    };
    run("first", "0644");
    let serving = Serving::start(&ground, &[]);
    assert_eq!(serving.authorization, "");
    serving.stats_when(|stats| stats["requests"]["ok"].as_u64() > Some(0));
    run("second", "0600");
    let folder = fs::metadata(ground.path("out/fragments")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o755);
    // The server goes on with the second run.
    let line = serving
        .started
        .wait_for_line("some users may not read this run");
    assert_eq!(serving.get("/stats").status, 401);
    let (_, token) = line.split_once("?token=").unwrap();
    let token = token.split(' ').next().unwrap();
    let right = format!("Authorization: Bearer {token}\r\n");
    assert_answers(&serving, "localhost", &right, token);
    assert_ne!(Serving::start(&ground, &[]).authorization, "");
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
    assert not name.endswith(("_count", "_sum", "_bucket", "_total")), name
    assert not name.endswith(tuple("_" + unit for unit in UNITS)), name
    seen = set()
    for sample in family.samples:
        labels = tuple(sorted(sample.labels.items()))
        assert (sample.name, labels) not in seen, (sample.name, labels)
        seen.add((sample.name, labels))
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
        metrics.text().contains(r#"engine="a \"quoted\\ name""#),
        "{}",
        metrics.text()
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
    stdin.write_all(&metrics.body).unwrap();
    drop(stdin);
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", metrics.text());
    // 50 requests of 1, 2, 3 and 4 tokens in turn, and the two names of their spans.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "50 123\n2\n");
}
