//! Tests `sa-profile serve` and `watch` with processes that really record, and with clients of every kind.

use crate::program::{Ended, Ground, PROGRAM, Started};
use crate::serving::{Serving, bearer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Script that shows a page in a browser.
const SHOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/show");

impl Serving {
    fn stats(&self) -> Value {
        let found = self.ask("GET", "/stats");
        match found.status {
            200 => serde_json::from_slice(&found.body).unwrap(),
            _ => Value::Null, // the run was not polled yet
        }
    }

    /// Returns the values that Prometheus treats as sums, with their labels.
    fn sums(&self) -> BTreeMap<String, f64> {
        let metrics = String::from_utf8(self.ask("GET", "/metrics").body).unwrap();
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

    /// Waits until the figures meet a condition, and returns them.
    fn stats_when(&self, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        self.started.wait_until(|| {
            last = self.stats();
            is_so(&last)
        });
        last
    }
}

/// Starts a process that records into `out`.
fn record(ground: &Ground, name: &str, words: &str) -> Started {
    fs::create_dir_all(ground.path("out")).unwrap();
    let mut command = ground.worker(&[name]);
    Started::spawn(command.args(words.split(' ')))
}

/// Records a process that answers some requests, to its end.
fn record_requests(ground: &Ground) -> Ended {
    record(ground, "api", "requests=5").end()
}

fn set_mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

/// Asserts that the served figures match the figures in a report.
fn assert_same(stats: &Value, ground: &Ground) {
    let report = ground.json(&["report", "--json", "out"]);
    let (served, reported) = (&stats["requests"], &report["requests"]);
    for key in ["ok", "aborted", "failed"] {
        assert_eq!(served[key], reported[key], "{key}");
    }
    assert_eq!(stats["unfinished"], reported["unfinished"]);
    assert_eq!(served["e2e"]["n"], reported["e2e"]["n"]);
    let tokens = |key: &str| -> u64 {
        let requests = report["request"].as_array().unwrap().iter();
        requests.filter_map(|one| one[key].as_u64()).sum()
    };
    assert_eq!(served["output_tokens"], tokens("output_tokens"));
    assert_eq!(served["prompt_tokens"], tokens("prompt_tokens"));
    let names = report["names"].as_array().unwrap();
    let served_names = stats["names"].as_array().unwrap();
    assert!(!served_names.is_empty());
    for name in served_names {
        let is_job =
            |one: &&Value| one["name"] == name["name"] && one["category"] == name["category"];
        let one = names.iter().find(is_job).unwrap();
        assert_eq!(name["ncall"], one["ncall"], "{name}");
        assert_eq!(name["max_ns"], one["duration"]["max_ns"], "{name}");
        let total_ns =
            one["duration"]["mean_ns"].as_f64().unwrap() * one["ncall"].as_f64().unwrap();
        let off = (name["total_ns"].as_f64().unwrap() - total_ns).abs();
        assert!(off < 1.0, "{name}");
    }
    assert_eq!(stats["recorded"]["events"], report["recorded"]["events"]);
}

/// Compares the figures while processes live, after one was killed, and after all have ended.
#[test]
fn the_figures_are_those_of_the_report() {
    let ground = Ground::new();
    fs::create_dir_all(ground.path("out")).unwrap();
    let serving = Serving::figures(&ground, &[]);
    serving.stats_when(|stats| stats["state"] == "waiting");
    let go_on = ground.path("go-on");
    let until = format!("until={}", go_on.display());
    let words = format!("threads=2 requests=200 {until} requests=30");
    let [api, core] = ["api", "core"].map(|name| record(&ground, name, &words));
    let words = format!("threads=2 requests=40 {until} open requests=3 kill");
    let doomed = record(&ground, "doomed", &words);
    let live = serving.stats_when(|stats| stats["requests"]["arrived"] == 440);
    assert!(live["state"] == "live" && live["is_final"] == false);
    assert_eq!(live["recorded"]["alive"], 3);
    assert_eq!(live["engine"].as_array().unwrap().len(), 3);
    assert_eq!(live["engine"][0]["kv_used"], 0.125);
    assert_same(&live, &ground);
    let watched = ground.run(&["watch", "--once", "out"]).stdout;
    let words = format!("failed, {} in flight", live["unfinished"]);
    assert!(
        watched.contains(&words) && watched.contains("KV CACHE USE"),
        "{watched}"
    );
    let before = serving.sums();
    assert!(before["sa_profile_events_total"] > 0.0, "{before:?}");
    fs::write(&go_on, "").unwrap();
    for worker in [api, core, doomed] {
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
    // A tenth of the requests are aborted, so they have no E2E.
    assert_eq!(after["sa_profile_e2e_request_latency_seconds_count"], 450.0);
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
    let files = fs::read_dir(ground.path("out/fragments")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let rings = paths.filter(|path| path.extension().is_some_and(|end| end == "ring"));
    assert_eq!(rings.count(), 1);
    let policy = "content-security-policy: default-src 'none'";
    assert!(serving.ask("GET", "/").head.contains(policy));
    serving.started.signal("INT");
    assert_eq!(serving.started.end().code, Some(0));
}

/// Starts a browser that opens a page and waits until it shows one text after the other. Returns `None`, with a message, if there is no browser.
fn browser(test: &str, address: &str, texts: &[&str]) -> Option<Started> {
    let started = Started::spawn(Command::new(SHOW).arg(address).args(texts));
    let line = started.wait_for_line("show: ");
    if line.contains("unavailable") {
        eprintln!("SKIPPED {test}: {line}");
        return None;
    }
    Some(started)
}

/// Returns what the browser has shown, for each text.
fn shown_texts(started: Started) -> Vec<Value> {
    let ended = started.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let shown: Vec<Value> = lines.collect();
    for text in &shown {
        assert_eq!(text["errors"], serde_json::json!([]), "{text}");
    }
    shown
}

/// Returns the number of requests that the charts show as answered.
fn answered(past: &Value) -> Option<f64> {
    let rates = past["requests_per_s"].as_array()?.iter();
    let seconds = past["part_ns"].as_f64()? / 1e9;
    Some((rates.filter_map(Value::as_f64).sum::<f64>() * seconds).round())
}

/// Keeps a page open while processes record and end.
#[test]
fn alone_the_page_goes_with_the_run() {
    let test = "alone_the_page_goes_with_the_run";
    let ground = Ground::new();
    let go_on = ground.path("go-on");
    let words = format!("threads=2 requests=20 until={} requests=3", go_on.display());
    let workers = ["api", "core"].map(|name| record(&ground, name, &words));
    let serving = Serving::figures(&ground, &[]);
    let ended = |stats: &Value| {
        let count = |key: &str| stats["requests"][key].as_u64().unwrap_or_default();
        count("ok") + count("aborted") + count("failed")
    };
    serving.stats_when(|stats| ended(stats) == 40);
    // The last part of the charts appears once it is over.
    let stats =
        serving.stats_when(|stats| answered(&stats["past"]) == stats["requests"]["ok"].as_f64());
    assert_eq!(
        stats["past"]["in_flight"].as_array().unwrap().last(),
        Some(&0.into())
    );
    let texts = ["is running.", "these are the figures of its report"];
    let Some(started) = browser(test, &serving.link, &texts) else {
        return;
    };
    fs::write(&go_on, "").unwrap();
    for worker in workers {
        worker.end();
    }
    let shown = shown_texts(started);
    let last = serving.stats();
    assert_eq!(last["is_final"], true);
    for (page, requests, alive) in [(&shown[0], 40, 2), (&shown[1], 46, 0)] {
        let text = page["text"].as_str().unwrap();
        for words in [
            format!("{requests}\nrequests ended"),
            format!("{alive} of 2\nprocesses alive"),
            "http.completions".to_owned(),
            "KV cache use: 12.5 %".to_owned(),
            "in flight: 0".to_owned(),
        ] {
            assert!(text.contains(&words), "{words}: {text}");
        }
    }
}

/// An idle server must be shown as idle: no figure may be computed from its last event. `watch` continues until a signal ends it.
#[test]
fn issue_47_an_idle_server_is_shown_as_idle() {
    let ground = Ground::new();
    let worker = record(&ground, "api", "threads=2 requests=9 sleep=120000");
    let serving = Serving::figures(&ground, &[]);
    let watch = ground.start(&["watch", "out"]);
    let idle = serving.stats_when(|stats| {
        let silent_ns = stats["no_event_for_ns"].as_u64();
        silent_ns > Some(13_000_000_000)
    });
    assert_eq!(idle["state"], "live");
    assert!(idle["requests"]["ok"].as_u64() > Some(0), "{idle}");
    assert_eq!(idle["last_10_s"]["requests_per_s"], 0.0);
    let watched = ground.run(&["watch", "--once", "out"]).stdout;
    assert!(watched.contains("silent    no event for "), "{watched}");
    watch.signal("INT");
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.lines().count() >= 2, "{}", ended.stdout);
    drop(worker);
}

#[test]
fn others_need_a_token() {
    let ground = Ground::new();
    record_requests(&ground);
    fs::write(ground.path("short"), "short\n").unwrap();
    for (option, refusal) in [
        (
            "--listen=0.0.0.0:0",
            "expected --token-file FILE, found none",
        ),
        ("--token-file=short", "short: expected a token of 16"),
    ] {
        let refused = ground.run(&["serve", option, "out"]);
        assert_eq!(refused.code, Some(2));
        refused.says(&[refusal]);
    }
    fs::write(ground.path("token"), "0123456789-abcdef\n").unwrap();
    let words = ["serve", "--listen=0.0.0.0:0", "--token-file=token", "out"];
    let serving = Serving::from_serve(ground.start(&words), "0.0.0.0");
    assert!(!serving.link.contains("0123"), "{}", serving.link);
    assert_answers(&serving, "any.name", "0123456789-abcdef");
}

/// Checks that only clients with the token get the figures.
fn assert_answers(serving: &Serving, host: &str, token: &str) {
    let status = |target: &str, header: &str| {
        let headers = format!("Host: {host}\r\n{header}");
        serving.send_request("GET", target, &headers).status
    };
    let (right, wrong) = (bearer(token), bearer(&"x".repeat(token.len())));
    let started = &serving.started;
    started.wait_until(|| status("/stats", &right) == 200);
    for (target, header, expected) in [
        ("/stats", "", 401),
        ("/stats", wrong.as_str(), 401),
        (&format!("/stats?token={token}"), "", 401),
        ("/metrics", "", 401),
        ("/nothing", "", 401),
        ("/", "", 401),
        (&format!("/?token={token}"), "", 200),
        ("/metrics", &right, 200),
    ] {
        assert_eq!(status(target, header), expected, "{target} {header}");
    }
}

/// Returns the token in a line or a link.
fn token_in(line: &str) -> &str {
    let (_, token) = line.split_once("?token=").unwrap();
    token.split(' ').next().unwrap()
}

/// Every user of the machine can connect to 127.0.0.1.
#[test]
fn a_run_that_others_may_not_read_has_a_token_on_this_machine_too() {
    let ground = Ground::new();
    record_requests(&ground);
    let serving = Serving::figures(&ground, &[]);
    let token = token_in(&serving.link);
    assert!(token.len() >= 32, "{token}");
    assert_answers(&serving, "127.0.0.1", token);
    assert_ne!(token_in(&Serving::figures(&ground, &[]).link), token);
    serving.started.signal("INT");
    let ended = serving.started.end();
    assert_eq!(ended.stderr.matches(token).count(), 1, "{}", ended.stderr);
    assert_eq!(Serving::figures(&ground, &["--no-token"]).path, "/");
    fs::write(ground.path("token"), "0123456789-abcdef\n").unwrap();
    let serving = Serving::figures(&ground, &["--token-file", "token"]);
    assert_eq!(serving.path, "/");
    assert_eq!(serving.ask("GET", "/stats").status, 401);
    // All users can enter the folders of the fragments, but cannot read the fragments.
    for path in [".", "out", "out/fragments"] {
        set_mode(&ground.path(path), 0o755);
    }
    assert_ne!(Serving::figures(&ground, &[]).path, "/");
}

/// A folder of fragments keeps the mode that the first run gave it.
#[test]
fn issue_47_a_private_run_after_a_public_one_needs_a_token() {
    let ground = Ground::new();
    set_mode(&ground.path("."), 0o755);
    let run = |name: &str, bits: &str| {
        fs::create_dir_all(ground.path("out")).unwrap();
        set_mode(&ground.path("out"), 0o755);
        let mut command = ground.worker(&[name, "requests=5"]);
        Started::spawn(command.env("SA_PROFILE_MODE", bits)).end();
    };
    run("first", "0644");
    let serving = Serving::figures(&ground, &[]);
    assert_eq!(serving.path, "/");
    serving.stats_when(|stats| stats["requests"]["ok"].as_u64() > Some(0));
    run("second", "0600");
    let folder = fs::metadata(ground.path("out/fragments")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o755);
    // The server continues with the second run.
    let started = &serving.started;
    let line = started.wait_for_line("some users may not read this run");
    assert_eq!(serving.ask("GET", "/stats").status, 401);
    assert_answers(&serving, "localhost", token_in(&line));
    assert_ne!(Serving::figures(&ground, &[]).path, "/");
}

/// Script that checks names and types of metrics like `promtool check metrics`, after parsing them with Prometheus' own Python parser.
const CHECK: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
assert len(families) > 30, len(families)
assert len({family.name for family in families}) == len(families)
samples = [sample for family in families for sample in family.samples]
assert len({(sample.name, *sorted(sample.labels.items())) for sample in samples}) == len(samples)
for family in families:
    assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
    ends = "count sum bucket total s ms us ns sec b kb mb gb tb pb m h d"
    assert not family.name.endswith(tuple("_" + end for end in ends.split())), family.name
    if family.type == "counter":
        assert all(sample.name == family.name + "_total" and sample.value >= 0 for sample in family.samples), family
by_name = {sample.name: sample.value for sample in samples if not sample.labels}
print(int(by_name["sa_profile_time_to_first_token_seconds_count"]), int(by_name["sa_profile_output_tokens_total"]))
print(sum(sample.name == "sa_profile_slices_total" for sample in samples))
"#;

/// Returns a Python with Prometheus' parser: the one of the Python package's tests, or the system's.
fn python() -> Option<String> {
    let target = Path::new(PROGRAM).ancestors().nth(2).unwrap();
    let of_tests = target.join("python/venv/bin/python").display().to_string();
    [of_tests, "python3".to_owned()].into_iter().find(|python| {
        let mut import = Command::new(python);
        import.args(["-c", "import prometheus_client.parser"]);
        let tried = import.stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

#[test]
fn prometheus_reads_the_metrics() {
    let ground = Ground::new();
    record(&ground, "a \"quoted\\ name", "requests=50").end();
    let serving = Serving::figures(&ground, &[]);
    serving.stats_when(|stats| stats["is_final"] == true);
    let metrics = serving.ask("GET", "/metrics");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8\r\n";
    assert!(metrics.head.contains(kind), "{}", metrics.head);
    let text = String::from_utf8_lossy(&metrics.body);
    assert!(text.contains(r#"engine="a \"quoted\\ name""#), "{text}");
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
    let stdin = check.stdin.take();
    stdin.unwrap().write_all(&metrics.body).unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    // 50 requests with 1, 2, 3 and 4 tokens in turn, and two span names.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "50 123\n2\n");
}
