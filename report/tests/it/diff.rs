//! Comparisons of two runs.

use crate::reports::{fixture, has_words, report, report_from_text};
use serde_json::{Value, json};
use std::fmt::Write as _;
use trace_merge::Exit;
use trace_report::{
    Crash, EngineSettings, IdleCause, Metric, MetricDiff, RunDiff, RunReport, VerdictRule, compare,
    parse_condition, screen,
};

/// A server of one engine with one device, and its clients.
#[derive(Clone, Copy)]
struct Server {
    seed: u64,
    requests: u64,
    /// Mean time between random arrivals. With 0, each client sends its next request as soon as it has an answer.
    arrivals_us: u64,
    clients: usize,
    /// Maximum number of running requests.
    slots: usize,
    /// Percentage of the KV cache that a running request uses.
    kv_percent: u64,
    prompt: u64,
    output: u64,
    /// Time per prompt token, and per output token.
    prefill_us: u64,
    decode_us: u64,
    /// One in this many requests fails.
    failing: u64,
}

const SERVER: Server = Server {
    seed: 1,
    requests: 100,
    arrivals_us: 500_000,
    clients: 8,
    slots: 8,
    kv_percent: 2,
    prompt: 1_000,
    output: 100,
    prefill_us: 30,
    decode_us: 10_000,
    failing: u64::MAX,
};

impl Server {
    /// Returns the report of a run in which the server handles all requests in the order of their arrival.
    fn run(self) -> RunReport {
        let mut chance = fastrand::Rng::with_seed(self.seed);
        let mut noise = move || 0.8 + 0.4 * chance.f64();
        let mut gaps = fastrand::Rng::with_seed(self.seed + 1_000);
        let (mut slots, mut clients) = (vec![0; self.slots], vec![0; self.clients]);
        let (mut text, mut edges, mut ts) = ("L 3 'NPU 0, pid 10'\n".to_owned(), Vec::new(), 0);
        for id in 0..self.requests {
            let client = earliest(&clients);
            ts = match self.arrivals_us {
                0 => clients[client] + 100,
                mean_us => ts + us(mean_us as f64 * -(1.0 - gaps.f64()).ln()),
            };
            let slot = earliest(&slots);
            let scheduled = slots[slot].max(ts + 200);
            let first = scheduled + us((self.prompt * self.prefill_us) as f64 * noise());
            let last = first + us(((self.output - 1) * self.decode_us) as f64 * noise());
            let end = last + 300;
            (slots[slot], clients[client]) = (last, end);
            edges.extend([(ts, 0, 1), (scheduled, 1, -1), (last, -1, 0)]);
            let ok = (id + 1) % self.failing != 0;
            let reason = if ok { "stop" } else { "error" };
            let (http, prefill, decode) = (end - ts, first - scheduled, last - first);
            let (prompt, output) = (self.prompt, self.output);
            writeln!(
                text,
                "X 9/{id} {ts}+{http} http.request request_id=r{id}
                i 10 {ts} request.queued request_id=r{id} prompt_tokens={prompt}
                i 10 {scheduled} request.scheduled request_id=r{id}
                i 10 {first} request.token request_id=r{id}
                i 9/{id} {first} request.token request_id=r{id}
                i 10 {last} request.token request_id=r{id}
                i 10 {last} request.finished request_id=r{id} output_tokens={output} reason={reason}
                X 3/{slot} {scheduled}+{prefill} prefill_attention
                X 3/{slot} {first}+{decode} decode_attention"
            )
            .unwrap();
        }
        edges.sort_unstable();
        let (mut running, mut waiting) = (0, 0);
        for (ts, more_running, more_waiting) in edges {
            (running, waiting) = (running + more_running, waiting + more_waiting);
            let used = running * self.kv_percent as i64;
            writeln!(
                text,
                "C 10 {ts} requests running={running} waiting={waiting}
                C 10 {ts} kv_cache used_percent={used}"
            )
            .unwrap();
        }
        let slots = self.slots;
        let settings =
            json!({ "max_num_seqs": slots, "max_model_len": 4_096, "dtype": "bfloat16" });
        with_settings(report_from_text(&text), settings)
    }
}

fn earliest(times: &[u64]) -> usize {
    let times = times.iter().enumerate();
    times.min_by_key(|(_, ts)| **ts).unwrap().0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests: times are short"
)]
fn us(time: f64) -> u64 {
    time as u64
}

fn with_settings(mut report: RunReport, settings: Value) -> RunReport {
    report.settings = vec![EngineSettings {
        process: 0,
        values: serde_json::from_value(settings).unwrap(),
    }];
    report
}

/// Returns the screen of a comparison without line breaks in its first sentence. Checks that it fits a terminal and has
/// no huge percentages.
fn screen(one: &RunReport, other: &RunReport) -> String {
    let diff = compare(std::slice::from_ref(one), std::slice::from_ref(other));
    let text = screen::diff_text(&diff);
    assert!(text.lines().count() <= 40, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let percentages = text
        .split(" %")
        .map(|text| text.rsplit([' ', '+', '-']).next());
    for percentage in percentages.take(text.matches(" %").count()) {
        let percent: f64 = percentage.unwrap().parse().unwrap();
        assert!(percent <= 1_000.0, "{text}");
    }
    let (sentence, tables) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
    sentence.replace('\n', " ") + "\n\n" + tables
}

const CLIENTS: Server = Server {
    arrivals_us: 0,
    ..SERVER
};

/// Name of each case, both servers, and texts of the screen.
const CHANGES: [(&str, Server, Server, &[&str]); 8] = [
    (
        "fewer slots",
        SERVER,
        Server { slots: 2, ..SERVER },
        &[
            "TTFT rose from 29.8 ms to ",
            "because running requests were capped at 2 instead of 8 (max_num_seqs).\n",
            "settings",
        ],
    ),
    (
        "more slots",
        Server { slots: 2, ..SERVER },
        SERVER,
        &[
            "TTFT fell from ",
            "because running requests were capped at 8 instead of 2 (max_num_seqs).\n",
        ],
    ),
    (
        "twice the load",
        Server { slots: 4, ..SERVER },
        Server {
            slots: 4,
            arrivals_us: 200_000,
            ..SERVER
        },
        &[
            "TTFT rose from ",
            "because 5.",
            " requests arrived per second instead of 1.97.\n",
        ],
    ),
    (
        "more clients",
        CLIENTS,
        Server {
            clients: 16,
            ..CLIENTS
        },
        &[
            "TTFT rose from ",
            "because 16 requests were in flight instead of 8.\n",
        ],
    ),
    (
        "longer prompts",
        SERVER,
        Server {
            prompt: 4_000,
            ..SERVER
        },
        &[
            "p50 TTFT rose from ",
            "because the mean prompt had 4,000 tokens instead of 1,000.\n",
            "prompt tokens",
        ],
    ),
    (
        "longer answers",
        SERVER,
        Server {
            output: 200,
            ..SERVER
        },
        &[
            "p50 E2E rose from 1.",
            "because the mean answer had 200 tokens instead of 100.\n",
        ],
    ),
    (
        "longer prompts, and slots that are never used",
        Server {
            slots: 64,
            ..SERVER
        },
        Server {
            slots: 32,
            prompt: 3_000,
            ..SERVER
        },
        &[
            "p50 TTFT rose from ",
            "because the mean prompt had 3,000 tokens instead of 1,000.\n",
            "64 → 32",
        ],
    ),
    (
        "a slower device",
        SERVER,
        Server {
            decode_us: 13_000,
            ..SERVER
        },
        &[
            "p50 TPOT rose from 10",
            "while decode_attention took 1.",
            " instead of 9",
        ],
    ),
];

#[test]
fn one_sentence_names_the_change_and_its_cause() {
    let mut failed = Vec::new();
    for (name, one, other, expected) in CHANGES {
        let other = Server { seed: 2, ..other };
        let text = screen(&one.run(), &other.run());
        failed.extend((!expected.iter().all(|words| text.contains(words))).then_some((name, text)));
    }
    for (name, text) in &failed {
        println!("== {name}\n{text}");
    }
    assert!(failed.is_empty());
}

#[test]
fn random_differences_are_not_changes() {
    let loads = [
        SERVER,
        Server {
            arrivals_us: 0,
            requests: 30,
            ..SERVER
        },
        // Requests wait for each other, so each burst makes many of them slow.
        Server {
            slots: 2,
            arrivals_us: 575_000,
            ..SERVER
        },
    ];
    for load in loads {
        let runs: Vec<RunReport> = (0..21).map(|seed| Server { seed, ..load }.run()).collect();
        for (seed, runs) in runs.windows(2).enumerate() {
            let text = screen(&runs[0], &runs[1]);
            let sentence = "No figure of the requests changed beyond what chance explains.\n";
            assert!(text.starts_with(sentence), "{seed}: {text}");
        }
    }
}

/// Returns the report of a run in which a process was killed.
fn crashed() -> RunReport {
    let mut run = SERVER.run();
    run.crash = Some(Crash {
        process: 1,
        exit: Some(Exit::Signal("SIGKILL".to_owned())),
        last_ns: None,
        step: Some("287".to_owned()),
        request_ids: Vec::new(),
        requests: 8,
        spans: Vec::new(),
        followed_by: Vec::new(),
        maybe_before: Vec::new(),
    });
    run
}

#[test]
fn crashes_and_missing_requests_come_first() {
    let served = || SERVER.run();
    let few = Server {
        requests: 3,
        ..SERVER
    };
    let failing = |failing| Server { failing, ..SERVER }.run();
    let idle = |us| report_from_text(&format!("X 1 0+{us} load"));
    let cases = [
        (
            served(),
            crashed(),
            "Only the second run crashed: process 10 was killed by SIGKILL in step 287, with 8 requests.\n",
        ),
        (crashed(), served(), "Only the first run crashed: "),
        (crashed(), crashed(), "No figure"),
        (
            idle(1_500),
            idle(3_000),
            "The runs have no requests to compare: they took 1.50 ms and 3.00 ms.\n",
        ),
        (
            served(),
            idle(1),
            "The second run has no requests, so there is nothing to compare.\n",
        ),
        (idle(1), served(), "The first run has no requests"),
        (
            few.run(),
            served(),
            "Too few requests to tell: 3 and 100 were answered, and a comparison needs eight from each run.\n",
        ),
        (
            served(),
            failing(4),
            "In the second run, 25 of 100 requests were not answered, and in the first run 0 of 100.\n",
        ),
        (served(), failing(40), "No figure"),
    ];
    for (one, other, expected) in cases {
        let text = screen(&one, &other);
        assert!(text.starts_with(expected), "{expected}: {text}");
    }
}

#[test]
fn unrelated_changes_are_not_named_as_causes() {
    let with = |settings| with_settings(SERVER.run(), settings);
    let many = Server {
        requests: 1_000,
        ..SERVER
    };
    let slow = |us| {
        Server {
            decode_us: us,
            ..many
        }
        .run()
    };
    let judged = |mut run: RunReport, rule| {
        run.verdict.rule = rule;
        run
    };
    let cases = [
        (
            with(json!({ "a": 1, "b": [1, 2] })),
            with(json!({ "a": 2, "b": [1, 2] })),
            "No figure of the requests changed beyond what chance explains, although a is 2 instead of 1.\n",
        ),
        (
            with(json!({ "a": 1 })),
            with(json!({ "b": "x" })),
            "No figure of the requests changed beyond what chance explains, although 2 settings differ.\n",
        ),
        (
            many.run(),
            slow(10_300),
            "Little changed: p50 TPOT rose from 10.1 ms to 10.4 ms.\n",
        ),
        (
            judged(SERVER.run(), VerdictRule::Nothing),
            judged(SERVER.run(), VerdictRule::Gc),
            "No figure of the requests changed beyond what chance explains, but the verdict changed from “nothing” to “gc”.\n",
        ),
        (
            judged(many.run(), VerdictRule::Nothing),
            judged(slow(13_000), VerdictRule::ProcessStalled),
            "p50 TPOT rose from 10.1 ms to 13.1 ms, while the verdict changed from “nothing” to “process stalled”.\n",
        ),
        (
            with_settings(
                many.run(),
                json!({ "engine_version": "1", "num_kv_blocks": 1_000 }),
            ),
            with_settings(
                slow(13_000),
                json!({ "engine_version": "2", "num_kv_blocks": 999 }),
            ),
            "p50 TPOT rose from 10.1 ms to 13.1 ms, while engine_version was 2 instead of 1 and another setting differs.\n",
        ),
    ];
    for (one, other, expected) in cases {
        let text = screen(&one, &other);
        assert!(text.starts_with(expected), "{expected}: {text}");
    }
}

/// The JSON contains the parts of the sentence.
#[test]
fn the_headline_has_a_schema() {
    let one = SERVER.run();
    let other = Server { slots: 2, ..SERVER }.run();
    let diff = compare(&[one], &[other]);
    let headline = serde_json::to_value(&diff.headline).unwrap();
    let expected = json!({
        "explains": true, "change": "setting", "name": "max_num_seqs", "one": [8], "other": [2]
    });
    assert_eq!(headline["cause"], expected);
    let kind = ["kind", "metric", "statistic"].map(|key| headline[key].as_str().unwrap());
    assert_eq!(kind, ["figure", "ttft", "p50"]);
    assert_eq!(headline["part"]["name"], "queue");
    let load = serde_json::to_value(&diff.load).unwrap();
    let running = load
        .as_array()
        .unwrap()
        .iter()
        .find(|diff| diff["of"] == "running_max");
    assert_eq!(
        running.unwrap(),
        &json!({ "of": "running_max", "one": 6.0, "other": 2.0 })
    );
}

/// Returns a run of `n` requests that take a few µs more than `us`, each with one step of the same length. Between
/// steps, the engine schedules for `gap_us`.
fn run(n: u64, us: u64, gap_us: u64, name: &str) -> RunReport {
    let (mut text, mut ts) = ("L 2 'pid 2'\nL 3 'NPU 0, pid 2'\n".to_owned(), 0);
    for number in 0..n {
        let dur = us + number % 7;
        let (step, kernel) = (ts + gap_us, dur - gap_us);
        text += &format!(
            "X 1 {ts}+{dur} http.request request_id=r{number}
            X 1 {ts}+{gap_us} scheduler.schedule
            X 3 {step}+{kernel} {name}\n"
        );
        ts += dur;
    }
    report_from_text(&text)
}

fn e2e(diff: &RunDiff) -> &MetricDiff {
    let mut metrics = diff.metrics.iter();
    metrics.find(|diff| diff.metric == Metric::E2e).unwrap()
}

#[test]
fn a_slowdown_is_reported_with_its_cause() {
    let one = run(100, 1_000, 100, "matmul");
    let other = run(100, 1_200, 300, "matmul_v2");
    let diff = compare(&[one], &[other]);
    let e2e = e2e(&diff);
    assert!(e2e.is_clear(), "{e2e:?}");
    let expected = (1_200.0 + 2.95) / (1_000.0 + 2.95);
    assert!((e2e.ratio.unwrap() - expected).abs() < 1e-9, "{e2e:?}");
    assert_eq!(diff.idle[0].cause, IdleCause::Scheduling);
    assert!(diff.idle[0].other > diff.idle[0].one);
    let name_diff = |name: &str| diff.names.iter().find(|diff| diff.name == name).unwrap();
    assert_eq!(name_diff("scheduler.schedule").more_ns(), 100 * 200_000);
    assert!(name_diff("matmul").other.is_none() && name_diff("matmul_v2").one.is_none());
    let words = ["slower", "scheduling", "added", "gone"];
    has_words(&screen::diff_text(&diff), &words);
    let holds = |condition| parse_condition(condition).unwrap().holds(&diff);
    has_words(&holds("p95(e2e) > +5%").unwrap().unwrap(), &["became"]);
    assert_eq!(holds("p95(e2e) > +25%"), Ok(None));
    assert!(holds("mean(e2e) > 1100us").unwrap().is_some());
    assert!(holds("requests_per_s < -10%").unwrap().is_some());
    has_words(&holds("p95(tpot) > +5%").unwrap_err(), &["first"]);
}

#[test]
fn a_run_against_itself_has_no_difference() {
    let one = report(fixture("serving.json"));
    let diff = compare(std::slice::from_ref(&one), std::slice::from_ref(&one));
    assert!(diff.metrics.iter().all(|diff| !diff.is_clear()));
    assert!(diff.metrics.iter().all(|diff| diff.ratio == Some(1.0)));
    assert!(diff.names.iter().all(|name| name.more_ns() == 0));
    assert!(!screen::diff_text(&diff).contains("slower"));
}

/// The requests of a side are counted together, and the figures of names are means over its runs.
#[test]
fn sides_may_have_several_runs() {
    let with = |n, us| run(n, us, 100, "matmul");
    let diff = compare(&[with(10, 1_000), with(30, 1_000)], &[with(20, 2_000)]);
    assert_eq!((diff.runs, diff.requests), ((2, 1), (40, 20)));
    let e2e = e2e(&diff);
    assert_eq!((e2e.one.n, e2e.other.n), (40, 20));
    let is_twice = (e2e.ratio.unwrap() - 2.0).abs() < 0.01;
    assert!(e2e.is_clear() && is_twice, "{e2e:?}");
    let name = diff
        .names
        .iter()
        .find(|diff| diff.name == "matmul")
        .unwrap();
    let calls = [name.one.unwrap().ncall, name.other.unwrap().ncall];
    assert_eq!(calls, [20, 20]);
    has_words(&screen::diff_text(&diff), &["\n2 and 1 runs: "]);
}
