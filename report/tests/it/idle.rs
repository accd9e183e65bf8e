//! Causes of idle devices, in traces where they are known.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::report_from_events;
use serde_json::Value;
use std::collections::BTreeMap;
use trace_report::IdleCause;

const FRONTEND: u64 = 9;
const ENGINE: u64 = 10;
const WORKERS: [u64; 2] = [11, 12];
const DEVICES: [u64; 2] = [101, 102];
const KERNEL_US: u64 = 10;
const STEP: &str = "WorkerWrapperBase.execute_model";

/// Causes that spans can produce: all except for lost events and unknown.
pub(crate) const PLANTED: [IdleCause; 15] = {
    let [_, planted @ .., _] = IdleCause::ALL;
    planted
};

/// A trace of one engine, two workers and their devices, and the time up to which it is written.
pub(crate) struct Server {
    text: String,
    now_us: u64,
    /// Start of the request in flight.
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
        // A kernel on the second device makes it a device.
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

    /// Adds a kernel on the first device that starts now, after it was in the queue for `queue_us`.
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

    /// Ends the request in flight, so that the next one can start.
    fn end_request(&mut self) {
        let (ts, dur, number) = (self.since_us, self.now_us - self.since_us, self.requests);
        self.add(&format!(
            "X {FRONTEND}/7 {ts}+{dur} http.request request_id=r{number}"
        ));
        self.requests += 1;
    }

    /// Makes the first device idle for this cause and time. A kernel ends the idle time.
    pub(crate) fn idle(&mut self, cause: IdleCause, us: u64) {
        let (from, to) = (self.now_us, self.now_us + us);
        let [longer, longest] = [us + KERNEL_US, us + 2 * KERNEL_US];
        self.add(&match cause {
            IdleCause::Frontend => format!("C 10 {from} requests running=0 waiting=0"),
            IdleCause::NotSchedulable => format!("C 10 {from} requests running=0 waiting=3"),
            IdleCause::Scheduling => format!("X 10 {from}+{us} scheduler.schedule"),
            IdleCause::Output => format!("X 10 {from}+{us} scheduler.update_from_output"),
            // The engine hands out a batch and processes its output.
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
                self.end_request();
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

    /// Returns the events of the whole trace.
    pub(crate) fn finished(mut self) -> Vec<Value> {
        self.end_request();
        events(&self.text)
    }
}

/// Adds delays of each kind, with random lengths and in random order. Each is found exactly.
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
        let found = report_from_events(&server.finished());
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
