//! Why devices were idle: traces in which it is known.

use crate::golden::of_lines;
use crate::oracle::Numbers;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trace_report::{Finding, IdleCause, RunReport};

const FRONTEND: u64 = 9;
const ENGINE: u64 = 10;
const WORKERS: [u64; 2] = [11, 12];
const DEVICES: [u64; 2] = [101, 102];
const KERNEL_US: u64 = 10;

/// Causes that spans can plant.
pub(crate) const PLANTED: [IdleCause; 15] = [
    IdleCause::NoRequest,
    IdleCause::Frontend,
    IdleCause::NotSchedulable,
    IdleCause::Engine,
    IdleCause::Scheduling,
    IdleCause::Output,
    IdleCause::Worker,
    IdleCause::Ipc,
    IdleCause::OtherRank,
    IdleCause::Gc,
    IdleCause::KvTransfer,
    IdleCause::Preparing,
    IdleCause::LaunchGap,
    IdleCause::LaunchDelay,
    IdleCause::Sampling,
];

/// A trace of one engine, two workers and their devices, and the time up to which it is written.
pub(crate) struct Server {
    pub(crate) lines: Vec<Value>,
    now_us: u64,
    /// When the request that is under way came.
    since_us: u64,
    requests: u64,
}

impl Server {
    pub(crate) fn new() -> Server {
        let named = |pid: u64, name: &str, labels: String| {
            [
                json!({"ph": "M", "pid": pid, "tid": 1, "name": "process_name", "args": {"name": name}}),
                json!({"ph": "M", "pid": pid, "tid": 1, "name": "process_labels", "args": {"labels": labels}}),
            ]
        };
        let mut lines = Vec::new();
        for (pid, name) in [
            (FRONTEND, "api"),
            (ENGINE, "engine"),
            (WORKERS[0], "w0"),
            (WORKERS[1], "w1"),
        ] {
            lines.extend(named(pid, name, format!("pid {pid}")));
        }
        for (number, device) in DEVICES.into_iter().enumerate() {
            lines.extend(named(
                device,
                &format!("NPU {number}"),
                format!("NPU {number}, pid {}", WORKERS[number]),
            ));
        }
        let mut server = Server {
            lines,
            now_us: 1_000,
            since_us: 1_000,
            requests: 0,
        };
        server.counts(1_000, 1, 0);
        // A kernel on the second device, so that it is one.
        server.span(DEVICES[1], "matmul", "kernel", 1_000, KERNEL_US);
        server.kernel(None);
        server
    }

    fn span(&mut self, pid: u64, name: &str, cat: &str, ts: u64, dur: u64) {
        self.lines.push(json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": dur, "name": name, "cat": cat}));
    }

    /// A batch that the engine gives out at the begin of this time, and takes in at its end.
    fn batch(&mut self, ts: u64, dur: u64) {
        for (phase, ts) in [("b", ts), ("e", ts + dur)] {
            self.lines.push(json!({"ph": phase, "pid": ENGINE, "tid": 1, "ts": ts, "id2": {"local": "0x1"}, "name": "batch", "cat": "executor"}));
        }
    }

    fn counts(&mut self, ts: u64, running: u64, waiting: u64) {
        self.lines.push(json!({"ph": "C", "pid": ENGINE, "tid": 1, "ts": ts, "name": "requests", "args": {"running": running, "waiting": waiting}}));
    }

    /// A kernel on the first device from now on, which lay in the queue for so long.
    fn kernel(&mut self, queue_us: Option<u64>) {
        let (ts, mut args) = (self.now_us, json!({}));
        if let Some(queue_us) = queue_us {
            args = json!({"queue_us": queue_us});
            self.span(WORKERS[0], "matmul", "kernel", ts - queue_us, 1);
        }
        self.lines.push(json!({"ph": "X", "pid": DEVICES[0], "tid": 1, "ts": ts, "dur": KERNEL_US, "name": "matmul", "cat": "kernel", "args": args}));
        self.now_us += KERNEL_US;
    }

    /// The request that is under way ends, or the next one comes.
    fn request_ends(&mut self) {
        let (ts, dur) = (self.since_us, self.now_us - self.since_us);
        let id = format!("r{}", self.requests);
        self.lines.push(json!({"ph": "X", "pid": FRONTEND, "tid": 7, "ts": ts, "dur": dur, "name": "http.request", "args": {"request_id": id}}));
        self.requests += 1;
    }

    /// The first device is idle for so long, for this cause; a kernel ends it.
    pub(crate) fn idle(&mut self, cause: IdleCause, us: u64) {
        let (from, to) = (self.now_us, self.now_us + us);
        let step = "WorkerWrapperBase.execute_model";
        match cause {
            IdleCause::NoRequest => {
                self.request_ends();
                self.since_us = to;
            }
            IdleCause::Frontend => {
                self.counts(from, 0, 0);
                self.counts(to, 1, 0);
            }
            IdleCause::NotSchedulable => {
                self.counts(from, 0, 3);
                self.counts(to, 1, 0);
            }
            IdleCause::Scheduling => self.span(ENGINE, "scheduler.schedule", "scheduler", from, us),
            IdleCause::Output => self.span(
                ENGINE,
                "scheduler.update_from_output",
                "scheduler",
                from,
                us,
            ),
            IdleCause::Worker => {
                self.batch(from, us);
                self.span(WORKERS[0], step, "worker", to, KERNEL_US);
            }
            IdleCause::Ipc => self.span(ENGINE, "wait_worker_output", "scheduler", from, us),
            IdleCause::OtherRank => self.span(WORKERS[1], step, "worker", from, us),
            IdleCause::Gc => self.span(WORKERS[0], "gc.collect", "python", from, us),
            IdleCause::KvTransfer => {
                self.span(WORKERS[0], "connector.start_load_kv", "worker", from, us);
            }
            IdleCause::Preparing => self.span(WORKERS[0], step, "worker", from, us + KERNEL_US),
            IdleCause::LaunchGap => {
                self.span(WORKERS[0], step, "worker", from, us + 2 * KERNEL_US);
                self.kernel(Some(0));
            }
            IdleCause::LaunchDelay => self.span(WORKERS[0], step, "worker", from, us + KERNEL_US),
            IdleCause::Sampling => {
                self.span(WORKERS[0], step, "worker", from, us + KERNEL_US);
                self.kernel(Some(0));
            }
            _ => {}
        }
        self.now_us += us;
        match cause {
            IdleCause::Preparing | IdleCause::LaunchGap => self.kernel(Some(0)),
            IdleCause::LaunchDelay => self.kernel(Some(us)),
            _ => self.kernel(None),
        }
    }

    pub(crate) fn report(self) -> RunReport {
        of_lines(&self.finished())
    }

    /// The whole trace.
    pub(crate) fn finished(mut self) -> Vec<Value> {
        self.request_ends();
        self.lines
    }
}

/// Delays of each kind, of random lengths and in random order: each is found, to the nanosecond.
#[test]
fn planted_delays_have_their_causes() {
    let mut numbers = Numbers::new(22);
    for round in 0..60 {
        let (mut server, mut planted) = (Server::new(), BTreeMap::new());
        for _ in 0..40 {
            let nth = usize::try_from(numbers.below(PLANTED.len() as u64)).unwrap();
            let cause = PLANTED[nth];
            let us = 5 + numbers.below(2_000);
            server.idle(cause, us);
            *planted.entry(cause).or_insert(0) += i64::try_from(us * 1_000).unwrap();
        }
        let found = server.report();
        let device = &found.idle[0];
        let causes = device.causes.iter().map(|time| (time.cause, time.ns));
        assert_eq!(causes.collect::<BTreeMap<_, _>>(), planted, "{round}");
        let time = &found.device[0];
        assert_eq!(device.idle_ns, time.wall_ns - time.busy_ns);
        assert!(!time.is_runner && device.engine.is_some());
        if let Some(ns) = planted.get(&IdleCause::OtherRank) {
            let wait = device.waited_for[0];
            assert_eq!(wait.ns, *ns);
            assert_eq!(found.recorded.process_name(wait.process), "w1");
        }
    }
}

/// What a thread of the host did while the device worked is hidden.
#[test]
fn host_time_is_exposed_or_hidden() {
    let mut server = Server::new();
    let kernel_at = server.now_us - KERNEL_US;
    server.span(ENGINE, "scheduler.schedule", "scheduler", kernel_at + 1, 4);
    server.idle(IdleCause::Scheduling, 50);
    let found = server.report();
    let host = found.idle[0].host[0];
    assert_eq!(
        (host.calls, host.total_ns, host.exposed_ns),
        (2, 54_000, 50_000)
    );
}

/// Who collects garbage is named.
#[test]
fn garbage_has_its_process() {
    let mut server = Server::new();
    for _ in 0..5 {
        server.idle(IdleCause::Gc, 2_000);
        server.span(ENGINE, "gc.collect", "python", server.now_us - 5, 1);
    }
    let finding = &server.report().findings[0];
    assert_eq!(finding.rule, "gc");
    let expected = "; w0 most of all, 5 times and 10.0 ms";
    assert!(finding.evidence.ends_with(expected), "{}", finding.evidence);
}

/// What costs most stands first, with the worker that is waited for.
#[test]
fn findings_name_what_costs_most() {
    let mut server = Server::new();
    for _ in 0..10 {
        server.idle(IdleCause::OtherRank, 600);
        server.idle(IdleCause::Scheduling, 300);
        server.idle(IdleCause::Output, 5);
    }
    let found = server.report();
    let rules: Vec<&str> = found.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["slow_rank", "scheduling"]);
    let first = &found.findings[0];
    assert!(
        first.evidence.ends_with(" waited 6.0 ms for w1"),
        "{first:?}"
    );
    // 10 × 600 µs of 10 × (905 + 3 × 10) + 10 µs on one device, and 10 µs on the other.
    assert!((first.cost - 6_000.0 / 9_370.0).abs() < 1e-9);
    let text = trace_report::screen::text(&found);
    assert!(text.contains("slow rank (64.0 % of device time)"), "{text}");
}

/// Ids, not names, tell which engine feeds a worker.
#[test]
fn two_engines_feed_their_own_devices() {
    let mut lines = Vec::new();
    for (number, engine) in [(0_u64, 10_u64), (1, 20)] {
        let (worker, device, id) = (engine + 1, 100 + engine, format!("r{number}"));
        lines.push(json!({"ph": "M", "pid": worker, "tid": 1, "name": "process_labels", "args": {"labels": format!("pid {worker}")}}));
        lines.push(json!({"ph": "M", "pid": device, "tid": 1, "name": "process_labels", "args": {"labels": format!("NPU {number}, pid {worker}")}}));
        let mut span = |pid: u64, name: &str, ts: u64, dur: u64| {
            lines.push(json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": dur, "name": name, "cat": "kernel", "args": {"request_ids": [id.clone()]}}));
        };
        span(device, "matmul", 0, 10);
        span(device, "matmul", 110, 10);
        span(worker, "WorkerWrapperBase.execute_model", 100, 20);
        // The first engine schedules, the second one takes in an output.
        let [scheduled, taken] = [number, 1 - number].map(|late| 10 + 200 * late);
        span(engine, "scheduler.schedule", scheduled, 90);
        span(engine, "scheduler.update_from_output", taken, 90);
    }
    let found = of_lines(&lines);
    let first = found.idle.iter().map(|device| &device.causes[0]);
    let first: Vec<_> = first.map(|time| (time.cause, time.ns)).collect();
    let expected = [IdleCause::Scheduling, IdleCause::Output].map(|cause| (cause, 90_000));
    assert_eq!(first, expected);
}

fn finding<'a>(report: &'a RunReport, rule: &str) -> &'a Finding {
    let mut findings = report.findings.iter();
    findings.find(|finding| finding.rule == rule).unwrap()
}

/// Four ranks; the third comes last to three of four collectives, by 30 µs behind the second last.
pub(crate) fn four_ranks() -> Vec<Value> {
    let mut lines = Vec::new();
    for rank in 0..4_u64 {
        let (worker, device) = (10 + rank, 100 + rank);
        lines.push(json!({"ph": "M", "pid": worker, "tid": 1, "name": "process_labels", "args": {"labels": format!("pid {worker}")}}));
        lines.push(json!({"ph": "M", "pid": device, "tid": 1, "name": "process_labels", "args": {"labels": format!("NPU {rank}, pid {worker}")}}));
        lines.push(json!({"ph": "M", "pid": device, "tid": 1, "name": "process_name", "args": {"name": format!("NPU {rank}")}}));
        for nth in 0..4_u64 {
            let late = match (rank, nth) {
                (2, 0..3) | (1, 3) => 40,
                _ => rank.min(1) * 10,
            };
            let start = 1_000 * nth + late;
            lines.push(json!({"ph": "X", "pid": device, "tid": 1, "ts": start, "dur": 100 - late, "name": "hcom_allReduce_", "cat": "comm"}));
        }
        if rank == 0 {
            // One that no other rank has: nobody knows to which it belongs.
            lines.push(json!({"ph": "X", "pid": device, "tid": 1, "ts": 5_000, "dur": 1, "name": "hcom_broadcast_", "cat": "comm"}));
        }
    }
    lines
}

#[test]
fn the_rank_that_comes_last_is_named() {
    let found = of_lines(&four_ranks());
    let of = |rank: usize| {
        let name = format!("NPU {rank}");
        let mut ranks = found.rank.iter();
        let rank = ranks.find(|rank| found.recorded.process_name(rank.process) == name);
        let rank = rank.unwrap();
        (rank.collectives, rank.last, rank.late_ns, rank.waited_ns)
    };
    assert_eq!(found.rank.len(), 4);
    assert_eq!(of(2), (4, 3, 90_000, 30_000));
    assert_eq!(of(1), (4, 1, 30_000, 90_000));
    assert_eq!(of(0), (4, 0, 0, 160_000));
    let late = finding(&found, "late_rank");
    assert!(late.evidence.starts_with("NPU 2 began 3 of 4"), "{late:?}");
    assert!(trace_report::screen::text(&found).contains("ranks      4 of 4"));
}

/// Delays of launches, and kernels that cost the host more time than the device; a device that has more to do than the other.
#[test]
fn launches_and_shares_of_work_are_told() {
    let mut server = Server::new();
    for nth in 0..4 {
        server.idle(IdleCause::LaunchDelay, 100 * (nth + 1));
    }
    let (worker, device) = (WORKERS[0], DEVICES[0]);
    for (nth, host_us) in [(0, 5.0), (1, 11.5)] {
        let ts = server.now_us + 20 * nth;
        server.lines.push(json!({"ph": "X", "pid": device, "tid": 1, "ts": ts, "dur": KERNEL_US, "name": "matmul", "args": {"host_wall_us": host_us}}));
    }
    server.now_us += 40;
    // The second device has a kernel at the begin and one at the end.
    let (now_us, step) = (server.now_us, "WorkerWrapperBase.execute_model");
    for (pid, name, category) in [
        (WORKERS[1], step, "worker"),
        (worker, step, "worker"),
        (DEVICES[1], "matmul", "kernel"),
    ] {
        server.span(pid, name, category, now_us, 1);
    }
    let found = server.report();
    let device = &found.device[0];
    let delay = &device.launch_delay;
    assert_eq!((delay.n, device.short_slices), (4, 1));
    assert_eq!((delay.min_ns, delay.max_ns), (100_000, 400_000));
    assert!((delay.p50_ns - 250_000.0).abs() < 1.0);
    let uneven = finding(&found, "uneven_devices");
    assert_eq!(uneven.evidence, "NPU 0 worked clearly more than NPU 1");
}

/// Two engines behind one frontend, of which one gets most requests.
#[test]
fn engines_with_other_loads_are_told() {
    let counts = |pid: u64, ts: u64, running: u64| json!({"ph": "C", "pid": pid, "tid": 1, "ts": ts, "name": "requests", "args": {"running": running, "waiting": 0}});
    let lines = [
        counts(1, 0, 8),
        counts(2, 0, 2),
        counts(1, 1_000, 0),
        counts(2, 1_000, 0),
    ];
    let found = of_lines(&lines);
    let [finding] = found.findings.as_slice() else {
        panic!("{:?}", found.findings)
    };
    assert_eq!(finding.rule, "uneven_engines");
    assert!((finding.cost - 0.3).abs() < 1e-9, "{finding:?}");
}

/// What an engine put into its steps, and who was put off for how long.
#[test]
fn steps_prompts_and_preemptions_are_told() {
    let counter = |ts: u64, name: &str, args: Value| json!({"ph": "C", "pid": 1, "tid": 1, "ts": ts, "name": name, "args": args});
    let moment = |ts: u64, name: &str| json!({"ph": "i", "pid": 1, "tid": 1, "ts": ts, "s": "t", "name": name, "args": {"request_id": "r0"}});
    let mut lines = vec![
        json!({"ph": "X", "pid": 1, "tid": 2, "ts": 0, "dur": 9_000, "name": "http.request", "args": {"request_id": "r0"}}),
        moment(10, "request.queued"),
        moment(20, "request.scheduled"),
        moment(3_000, "request.preempted"),
        moment(5_500, "request.resumed"),
        counter(9_000, "speculation", json!({"drafted": 40, "accepted": 30})),
    ];
    for (ts, prefill, decode) in [
        (1_000, 9, 0),
        (2_000, 0, 4),
        (3_000, 0, 4),
        (6_000, 20, 4),
        (7_000, 0, 4),
    ] {
        lines.push(counter(
            ts,
            "tokens",
            json!({"prefill": prefill, "decode": decode}),
        ));
    }
    let found = of_lines(&lines);
    assert_eq!(
        (
            found.request[0].preemptions(),
            found.request[0].preempted_ns()
        ),
        (1, 2_500_000)
    );
    let text = trace_report::screen::text(&found);
    for words in [
        "5 steps, 5.8 tokens of prompts and 3.2 of answers in the mean one",
        "a step of answers takes 1.00 ms; with a prompt in it 2.00 ms longer (20.0 % of the steps)",
        "of 40 speculated tokens 75.0 % were right",
        "1 of 1 requests were preempted, lay for 2.5 ms on average",
        "stalled decodes (33.3 % of a request's time, 3.00 ms of the mean one)",
        "preemptions (27.8 % of a request's time, 2.50 ms of the mean one)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Returns the steps of two workers, one of them 2.5 times slower, and their requests.
fn steps_named(step: &str, request: &str) -> RunReport {
    let span = |pid: u64, ts: u64, dur: u64, name: &str| json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": dur, "name": name, "args": {"request_id": "r"}});
    let mut lines = vec![span(FRONTEND, 0, 100_000, request)];
    for nth in 0..100 {
        lines.push(span(WORKERS[0], 1_000 * nth, 300, step));
        lines.push(span(WORKERS[1], 1_000 * nth, 750, step));
    }
    of_lines(&lines)
}

#[test]
fn names_that_the_report_does_not_know_are_a_sentence_and_no_silence() {
    let see = "docs/time.md#names-that-the-report-knows lists the names";
    let no_step = format!(
        "no step is known by name, so a slow worker and the causes of idle devices go unseen: {see}"
    );
    let no_request =
        format!("no request is known by name, so no figure of a request is there: {see}");
    for (step, request, sentences) in [
        ("my_engine.forward", "answer", vec![&no_step, &no_request]),
        ("my_engine.forward", "http.request", vec![&no_step]),
        ("my_engine.execute_step", "answer", vec![&no_request]),
        ("my_engine.execute_step", "http.request", vec![]),
    ] {
        let report = steps_named(step, request);
        let (text, page) = (
            trace_report::screen::text(&report),
            trace_report::page(&report, "run", None).unwrap(),
        );
        for sentence in [&no_step, &no_request] {
            let is_expected = sentences.contains(&sentence);
            let on_screen = format!("\n  {}\n", sentence.replace(": ", ":\n    "));
            assert_eq!(text.contains(&on_screen), is_expected, "{step}: {text}");
            assert_eq!(page.contains(sentence), is_expected, "{step}");
        }
        assert_eq!(report.unrecognized.len(), sentences.len());
    }
    assert_eq!(of_lines(&[]).unrecognized, []);
}

#[test]
fn the_page_that_the_report_links_lists_every_name() {
    let page = include_str!("../../../docs/time.md");
    let (_, section) = page
        .split_once("\n## Names that the report knows\n")
        .unwrap();
    let section = section.split("\n## ").next().unwrap();
    for name in ["execute_step", "run_batch", "request.queued", "http."] {
        assert!(section.contains(&format!("`{name}`")), "{name}");
    }
}

/// An engine that does not wait for its workers, as vLLM's with asynchronous scheduling, and one of its workers, without a device. The times are µs: when each batch is
/// handed over, taken in, and when the worker begins and ends its step and its sampling.
fn asynchronous(batches: &[[u64; 6]]) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut span = |pid: u64, name: &str, ts: u64, end: u64| {
        lines.push(
            json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": end - ts, "name": name}),
        );
    };
    for [handed, begin, end, sample, done, taken] in batches {
        span(ENGINE, "scheduler.schedule", handed - 5, *handed);
        span(ENGINE, "executor.execute_model", *handed, handed + 1);
        span(ENGINE, "executor.sample_tokens", handed + 1, handed + 2);
        span(ENGINE, "scheduler.update_from_output", *taken, taken + 5);
        span(WORKERS[0], "WorkerWrapperBase.execute_model", *begin, *end);
        span(WORKERS[0], "model_runner.sample_tokens", *sample, *done);
    }
    for (nth, [handed, .., taken]) in batches.iter().enumerate() {
        for (phase, ts) in [("b", handed + 1), ("e", *taken)] {
            lines.push(json!({"ph": phase, "pid": ENGINE, "tid": 1, "ts": ts, "id2": {"local": format!("{nth:#x}")}, "name": "batch", "cat": "executor"}));
        }
    }
    lines
}

/// The time of each cause in µs.
fn causes_us(lines: &[Value]) -> BTreeMap<IdleCause, i64> {
    let found = of_lines(lines);
    let [idle] = found.idle.as_slice() else {
        panic!("{:?}", found.idle)
    };
    let causes = idle.causes.iter();
    causes.map(|time| (time.cause, time.ns / 1_000)).collect()
}

/// Of two batches under way at once the worker has begun the first when the second comes.
#[test]
fn issue_47_a_stopped_worker_is_blamed_and_not_the_engine() {
    let found = causes_us(&asynchronous(&[
        [100, 110, 200, 200, 210, 220],
        // Handed over while the first is under way; the worker is stopped for 1 ms before it begins.
        [150, 1_210, 1_300, 1_300, 1_310, 1_320],
        [1_250, 1_310, 1_400, 1_400, 1_410, 1_420],
    ]));
    assert_eq!(found, BTreeMap::from([(IdleCause::Worker, 1_000)]));
}

#[test]
fn issue_47_a_stopped_engine_is_blamed_and_not_its_workers() {
    let found = causes_us(&asynchronous(&[
        [100, 110, 200, 200, 210, 1_220],
        // The engine is stopped for 1 ms, in which the worker ends both batches.
        [150, 210, 300, 300, 310, 1_225],
        [1_300, 1_310, 1_400, 1_400, 1_410, 1_420],
    ]));
    let of = |cause| found.get(&cause).copied().unwrap_or(0);
    assert_eq!(of(IdleCause::Worker), 10, "{found:?}"); // from 1,300 to 1,310
    assert_eq!(of(IdleCause::Output), 10, "{found:?}");
    assert_eq!(of(IdleCause::Engine), 975, "{found:?}");
}

/// An engine that waits for its workers, whose sampling is a call of its own.
#[test]
fn issue_47_between_two_calls_the_engine_has_the_step() {
    let mut lines = Vec::new();
    let mut span = |pid: u64, name: &str, ts: u64, end: u64| {
        lines.push(
            json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": end - ts, "name": name}),
        );
    };
    for from in [0, 1_000] {
        span(ENGINE, "executor.execute_model", from, from + 100);
        span(
            WORKERS[0],
            "WorkerWrapperBase.execute_model",
            from + 30,
            from + 90,
        );
        // The engine takes 60 µs to ask for the tokens, the worker 40 µs to begin with them.
        span(ENGINE, "executor.sample_tokens", from + 160, from + 300);
        span(
            WORKERS[0],
            "model_runner.sample_tokens",
            from + 200,
            from + 280,
        );
    }
    let found = causes_us(&lines);
    let expected = [
        (IdleCause::Worker, 2 * 40 + 30),
        (IdleCause::Ipc, 10 + 20 + 10),
        (IdleCause::Engine, 60 + 700 + 60),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}

/// Two workers without devices, whose steps follow each other: each has nothing to do for more of its time than both of them.
#[test]
fn issue_47_workers_are_not_called_devices_and_the_share_says_what_it_means() {
    let mut lines = Vec::new();
    for (pid, begins) in [(11, [0, 50]), (12, [10, 60])] {
        lines.extend(begins.map(|ts| {
            json!({"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": 10, "name": "WorkerProcess.execute_step"})
        }));
    }
    let found = of_lines(&lines);
    assert_eq!((found.device.len(), found.worker.len()), (0, 2));
    assert_eq!(found.idle_together.wall_ns, 70_000);
    assert_eq!(found.idle_together.idle_ns, 30_000);
    let text = trace_report::screen::text(&found);
    let line = "idle       no device is recorded; on average, workers were outside a step for 66.7 % of the time, all of them at once for 42.9 %; what was waited for:\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("devices    none recorded"), "{text}");
    assert!(!text.contains("busy"), "{text}");
    let short = trace_report::screen::short(&found);
    assert!(
        short.contains(&("devices", "none recorded".to_owned())),
        "{short:?}"
    );
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["device"], json!([]));
    assert_eq!(json["worker"][0]["busy_ns"], json!(20_000));
    let page = trace_report::page(&found, "a run", None).unwrap();
    assert!(page.contains("Workers whose device is not recorded"));
}
