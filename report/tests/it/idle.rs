//! Why devices were idle: traces in which it is known.

use crate::golden::of_lines;
use crate::oracle::Numbers;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trace_report::{IdleCause, RunReport};

const FRONTEND: u64 = 9;
const ENGINE: u64 = 10;
const WORKERS: [u64; 2] = [11, 12];
const DEVICES: [u64; 2] = [101, 102];
const KERNEL_US: u64 = 10;

/// Causes that spans can plant.
pub(crate) const PLANTED: [IdleCause; 14] = [
    IdleCause::NoRequest,
    IdleCause::Frontend,
    IdleCause::NotSchedulable,
    IdleCause::Engine,
    IdleCause::Scheduling,
    IdleCause::Output,
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
            IdleCause::Ipc => self.span(ENGINE, "executor.execute_model", "executor", from, us),
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
        let causes: BTreeMap<IdleCause, i64> = device
            .causes
            .iter()
            .map(|time| (time.cause, time.ns))
            .collect();
        assert_eq!(causes, planted, "round {round}");
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

/// Where no device is recorded, the steps of the workers stand for them; where no engine is, nothing tells.
#[test]
fn steps_stand_for_devices() {
    let step = |ts: u64, dur: u64| json!({"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "name": "model_runner.execute_model", "cat": "worker"});
    let found = of_lines(&[step(0, 30), step(50, 10), step(100, 5)]);
    let (device, idle) = (&found.device[0], &found.idle[0]);
    assert!(device.is_runner);
    assert_eq!((device.busy_ns, idle.idle_ns), (45_000, 60_000));
    assert_eq!(idle.causes[0].cause, IdleCause::Unknown);
    let text = trace_report::screen::text(&found);
    assert!(text.contains("no device is recorded"), "{text}");
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
    assert!(
        found.findings[0]
            .evidence
            .ends_with(" waited 6.0 ms for w1"),
        "{:?}",
        found.findings[0]
    );
    // 10 × 600 µs of 10 × (905 + 3 × 10) + 10 µs on one device, and 10 µs on the other.
    assert!((found.findings[0].cost - 6_000.0 / 9_370.0).abs() < 1e-9);
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
        span(engine, "scheduler.schedule", 10 + 200 * number, 90);
        span(
            engine,
            "scheduler.update_from_output",
            10 + 200 * (1 - number),
            90,
        );
    }
    let found = of_lines(&lines);
    for (device, cause) in found
        .idle
        .iter()
        .zip([IdleCause::Scheduling, IdleCause::Output])
    {
        assert_eq!(
            (device.causes[0].cause, device.causes[0].ns),
            (cause, 90_000)
        );
    }
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
    let late = found
        .findings
        .iter()
        .find(|finding| finding.rule == "late_rank")
        .unwrap();
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
    server.span(
        WORKERS[1],
        "WorkerWrapperBase.execute_model",
        "worker",
        server.now_us,
        1,
    );
    server.span(
        worker,
        "WorkerWrapperBase.execute_model",
        "worker",
        server.now_us,
        1,
    );
    server.span(DEVICES[1], "matmul", "kernel", server.now_us, 1);
    let found = server.report();
    let device = &found.device[0];
    assert_eq!((device.launch_delay.n, device.short_slices), (4, 1));
    assert_eq!(
        (device.launch_delay.min_ns, device.launch_delay.max_ns),
        (100_000, 400_000)
    );
    assert!((device.launch_delay.p50_ns - 250_000.0).abs() < 1.0);
    let uneven = found
        .findings
        .iter()
        .find(|finding| finding.rule == "uneven_devices");
    assert_eq!(
        uneven.unwrap().evidence,
        "NPU 0 worked clearly more than NPU 1"
    );
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
        (found.request[0].preemptions, found.request[0].preempted_ns),
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
