//! Why devices were idle: traces in which it is known.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::{has_words, of_lines, of_text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trace_report::{Finding, IdleCause, RunReport, screen};

const FRONTEND: u64 = 9;
const ENGINE: u64 = 10;
const WORKERS: [u64; 2] = [11, 12];
const DEVICES: [u64; 2] = [101, 102];
const KERNEL_US: u64 = 10;
const STEP: &str = "WorkerWrapperBase.execute_model";

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
    text: String,
    now_us: u64,
    /// When the request that is under way came.
    since_us: u64,
    requests: u64,
}

impl Server {
    pub(crate) fn new() -> Server {
        let text = "P 9 api 'pid 9'
            P 10 engine 'pid 10'
            P 11 w0 'pid 11'
            P 12 w1 'pid 12'
            P 101 'NPU 0' 'NPU 0, pid 11'
            P 102 'NPU 1' 'NPU 1, pid 12'\n";
        let mut server = Server {
            text: text.to_owned(),
            now_us: 1_000,
            since_us: 1_000,
            requests: 0,
        };
        server.counts(1_000, 1, 0);
        // A kernel on the second device, so that it is one.
        server.span(DEVICES[1], "matmul cat=kernel", 1_000, KERNEL_US);
        server.kernel(None);
        server
    }

    /// Adds some events.
    pub(crate) fn add(&mut self, lines: &str) {
        self.text += lines;
        self.text += "\n";
    }

    fn span(&mut self, pid: u64, name: &str, ts: u64, dur: u64) {
        self.add(&format!("X {pid} {ts}+{dur} {name}"));
    }

    fn counts(&mut self, ts: u64, running: u64, waiting: u64) {
        self.add(&format!(
            "C {ENGINE} {ts} requests running={running} waiting={waiting}"
        ));
    }

    /// A kernel on the first device from now on, which lay in the queue for so long.
    fn kernel(&mut self, queue_us: Option<u64>) {
        let (ts, mut args) = (self.now_us, String::new());
        if let Some(queue_us) = queue_us {
            args = format!(" queue_us={queue_us}");
            self.span(WORKERS[0], "matmul cat=kernel", ts - queue_us, 1);
        }
        let kernel = format!("matmul cat=kernel{args}");
        self.span(DEVICES[0], &kernel, ts, KERNEL_US);
        self.now_us += KERNEL_US;
    }

    /// The request that is under way ends, or the next one comes.
    fn request_ends(&mut self) {
        let (ts, dur, number) = (self.since_us, self.now_us - self.since_us, self.requests);
        self.add(&format!(
            "X {FRONTEND}/7 {ts}+{dur} http.request request_id=r{number}"
        ));
        self.requests += 1;
    }

    /// The first device is idle for so long, for this cause; a kernel ends it.
    pub(crate) fn idle(&mut self, cause: IdleCause, us: u64) {
        let (from, to) = (self.now_us, self.now_us + us);
        let [longer, longest] = [us + KERNEL_US, us + 2 * KERNEL_US];
        self.add(&match cause {
            IdleCause::Frontend => format!("C 10 {from} requests running=0 waiting=0"),
            IdleCause::NotSchedulable => format!("C 10 {from} requests running=0 waiting=3"),
            IdleCause::Scheduling => format!("X 10 {from}+{us} scheduler.schedule"),
            IdleCause::Output => format!("X 10 {from}+{us} scheduler.update_from_output"),
            // A batch that the engine gives out and takes in.
            IdleCause::Worker => format!(
                "b 10 {from} batch cat=executor id=1
                e 10 {to} batch cat=executor id=1
                X 11 {to}+{KERNEL_US} {STEP}"
            ),
            IdleCause::Ipc => format!("X 10 {from}+{us} wait_worker_output"),
            IdleCause::OtherRank => format!("X 12 {from}+{us} {STEP}"),
            IdleCause::Gc => format!("X 11 {from}+{us} gc.collect"),
            IdleCause::KvTransfer => format!("X 11 {from}+{us} connector.start_load_kv"),
            IdleCause::LaunchGap => format!("X 11 {from}+{longest} {STEP}"),
            IdleCause::Preparing | IdleCause::LaunchDelay | IdleCause::Sampling => {
                format!("X 11 {from}+{longer} {STEP}")
            }
            _ => String::new(),
        });
        match cause {
            IdleCause::NoRequest => {
                self.request_ends();
                self.since_us = to;
            }
            IdleCause::Frontend | IdleCause::NotSchedulable => self.counts(to, 1, 0),
            IdleCause::LaunchGap | IdleCause::Sampling => self.kernel(Some(0)),
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
        events(&self.text)
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
    server.span(ENGINE, "scheduler.schedule", kernel_at + 1, 4);
    server.idle(IdleCause::Scheduling, 50);
    let host = server.report().idle[0].host[0];
    let found = (host.calls, host.total_ns, host.exposed_ns);
    assert_eq!(found, (2, 54_000, 50_000));
}

/// Who collects garbage is named.
#[test]
fn garbage_has_its_process() {
    let mut server = Server::new();
    for _ in 0..5 {
        server.idle(IdleCause::Gc, 2_000);
        server.span(ENGINE, "gc.collect", server.now_us - 5, 1);
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
    let waited = " waited 6.0 ms for w1";
    assert!(first.evidence.ends_with(waited), "{first:?}");
    // 10 × 600 µs of 10 × (905 + 3 × 10) + 10 µs on one device, and 10 µs on the other.
    assert!((first.cost - 6_000.0 / 9_370.0).abs() < 1e-9);
    let text = screen::text(&found);
    has_words(&text, &["slow rank (64.0 % of device time)"]);
}

fn finding<'a>(report: &'a RunReport, rule: &str) -> &'a Finding {
    let mut findings = report.findings.iter();
    findings.find(|finding| finding.rule == rule).unwrap()
}

/// Delays of launches, and kernels that cost the host more time than the device; a device that has more to do than the other.
#[test]
fn launches_and_shares_of_work_are_told() {
    let mut server = Server::new();
    for nth in 0..4 {
        server.idle(IdleCause::LaunchDelay, 100 * (nth + 1));
    }
    for host_us in [5.0, 11.5] {
        let kernel = format!("matmul host_wall_us={host_us}");
        server.span(DEVICES[0], &kernel, server.now_us, KERNEL_US);
        server.now_us += 20;
    }
    // The second device has a kernel at the begin and one at the end.
    for (pid, name) in [
        (WORKERS[1], STEP),
        (WORKERS[0], STEP),
        (DEVICES[1], "matmul cat=kernel"),
    ] {
        server.span(pid, name, server.now_us, 1);
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

/// Returns the steps of two workers, one of them 2.5 times slower, and their requests.
fn steps_named(step: &str, request: &str) -> RunReport {
    let mut text = format!("X 9 0+100000 {request} request_id=r\n");
    for ts in (0..100_000).step_by(1_000) {
        text += &format!("X 11 {ts}+300 {step} request_id=r\nX 12 {ts}+750 {step} request_id=r\n");
    }
    of_text(&text)
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
        let text = screen::text(&report);
        let page = trace_report::page(&report, "run", None).unwrap();
        for sentence in [&no_step, &no_request] {
            let is_expected = sentences.contains(&sentence);
            let on_screen = format!("\n  {}\n", sentence.replace(": ", ":\n    "));
            assert_eq!(text.contains(&on_screen), is_expected, "{step}: {text}");
            assert_eq!(page.contains(sentence), is_expected, "{step}");
        }
        assert_eq!(report.unrecognized.len(), sentences.len());
    }
    assert_eq!(of_lines(&[]).unrecognized, []);
    let page = include_str!("../../../docs/time.md");
    let (_, section) = page
        .split_once("\n## Names that the report knows\n")
        .unwrap();
    let section = section.split("\n## ").next().unwrap();
    let names = [
        "`execute_step`",
        "`run_batch`",
        "`request.queued`",
        "`http.`",
    ];
    has_words(section, &names);
}

/// Two workers without devices, whose steps follow each other: each has nothing to do for more of its time than both of them.
#[test]
fn issue_47_workers_are_not_called_devices_and_the_share_says_what_it_means() {
    let found = of_text(
        "X 11 0+10 WorkerProcess.execute_step
        X 11 50+10 WorkerProcess.execute_step
        X 12 10+10 WorkerProcess.execute_step
        X 12 60+10 WorkerProcess.execute_step",
    );
    assert_eq!((found.device.len(), found.worker.len()), (0, 2));
    assert_eq!(found.idle_together.wall_ns, 70_000);
    assert_eq!(found.idle_together.idle_ns, 30_000);
    let text = screen::text(&found);
    let line = "idle       no device is recorded; on average, workers were outside a step for 66.7 % of the time, all of them at once for 42.9 %; what was waited for:\n";
    has_words(&text, &[line, "devices    none recorded"]);
    assert!(!text.contains("busy"), "{text}");
    let short = screen::short(&found);
    let none = ("devices", "none recorded".to_owned());
    assert!(short.contains(&none), "{short:?}");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["device"], json!([]));
    assert_eq!(json["worker"][0]["busy_ns"], json!(20_000));
    let page = trace_report::page(&found, "a run", None).unwrap();
    has_words(&page, &["Workers whose device is not recorded"]);
}
