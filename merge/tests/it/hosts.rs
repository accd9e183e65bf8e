//! Simulated hosts of which the truth is known: when everything happened, whatever their clocks said.

use crate::invocation::{Merged, RunDir};
use crate::random::Rng;
use crate::trace::ns;
use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;
use std::collections::HashMap;

pub(crate) const SECOND_NS: i64 = 1_000_000_000;
const EPOCH_NS: i64 = 1_795_248_902_000_000_000;

/// A host and its clocks.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// What its monotonic clock shows at the begin.
    pub(crate) begin_ns: i64,
    pub(crate) drift_ppm: i64,
    /// How far its wall clock is ahead of the truth.
    pub(crate) wall_ns: i64,
    /// When its wall clock is set, and how much it is ahead before.
    pub(crate) step: Option<(i64, i64)>,
    pub(crate) has_anchors: bool,
}

impl Host {
    pub(crate) fn new(begin_ns: i64, drift_ppm: i64, wall_ns: i64) -> Host {
        Host {
            begin_ns,
            drift_ppm,
            wall_ns,
            step: None,
            has_anchors: true,
        }
    }

    /// What its monotonic clock shows.
    pub(crate) fn monotonic_ns(&self, true_ns: i64) -> i64 {
        self.begin_ns + true_ns + true_ns / 1_000 * self.drift_ppm / 1_000
    }

    fn wall_ns(&self, true_ns: i64) -> i64 {
        let step = self.step.filter(|(at, _)| true_ns < *at);
        EPOCH_NS + true_ns + self.wall_ns + step.map_or(0, |(_, ahead)| ahead)
    }
}

/// Returns a fragment of a process of this host with nothing but the header.
pub(crate) fn fragment_on(host: &str, process: &Process) -> Fragment {
    let mut fragment = Fragment::foreign(process.pid);
    let header = process.header(0);
    fragment.line(&header.replace("node-3", host).replace("0b1f7a3e", host));
    fragment
}

/// Something that happened: when it began and ended in truth.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    host: usize,
    times: (i64, i64),
}

/// Hosts, and all that happened on them, by name.
pub(crate) struct Simulation {
    pub(crate) hosts: Vec<Host>,
    pub(crate) happened: HashMap<String, Happened>,
    /// The row of the NPUs that has their collectives.
    pub(crate) stream: &'static str,
    rng: Rng,
    lines: Vec<Vec<(i64, String)>>,
    length_ns: i64,
}

impl Simulation {
    pub(crate) fn new(hosts: Vec<Host>, length_ns: i64, seed: u64) -> Simulation {
        Simulation {
            lines: vec![Vec::new(); hosts.len()],
            hosts,
            happened: HashMap::new(),
            stream: "Stream 7",
            rng: Rng::new(seed),
            length_ns,
        }
    }

    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        i64::try_from(self.rng.below(usize::try_from(bound).unwrap())).unwrap()
    }

    fn process(number: usize) -> Process {
        Process {
            main: number == 0,
            ..Process::new(100 + u32::try_from(number).unwrap())
        }
    }

    /// A span on a host; the name must be new.
    pub(crate) fn span(&mut self, host: usize, times: (i64, i64), name: &str, args: &str) {
        let on = Simulation::process(host).main_thread();
        self.slice((host, on), times, name, args);
    }

    /// An all_reduce on the NPU of a host; `nth` is in its name.
    pub(crate) fn collective(&mut self, host: usize, times: (i64, i64), nth: usize) {
        let track = Simulation::process(host).thread(sa_format::TRACK_BASE);
        let stream = self.stream;
        let args =
            format!(r#""process":"NPU 0","label":"NPU 0","sort_index":0,"thread":"{stream}""#);
        let is_first = !self.lines[host].iter().any(|line| line.0 == i64::MIN);
        if is_first {
            self.lines[host].push((i64::MIN, track.metadata("sa_track", &args)));
        }
        // HCCL numbers the calls in their names.
        let name = format!("hcom_allReduce__952_{nth}_{host}");
        self.slice((host, track), times, &name, "");
    }

    fn clock_ns(&self, host: usize, true_ns: i64) -> u64 {
        u64::try_from(self.hosts[host].monotonic_ns(true_ns)).unwrap()
    }

    fn slice(&mut self, (host, on): (usize, On), times: (i64, i64), name: &str, args: &str) {
        let [begin, end] = [times.0, times.1].map(|at_ns| self.clock_ns(host, at_ns));
        let line = on.span(begin, end - begin, name, args);
        self.lines[host].push((times.0, line));
        let happened = Happened { host, times };
        self.happened.insert(name.to_owned(), happened);
    }

    /// A message from one host to another: a flow between two spans of 10 µs.
    pub(crate) fn message(
        &mut self,
        (from, to): (usize, usize),
        sent_ns: i64,
        takes_ns: i64,
        id: u64,
    ) {
        let args = format!(r#""request_id":"r{id}""#);
        for (phase, host, at_ns) in [("s", from, sent_ns), ("f", to, sent_ns + takes_ns)] {
            let times = (at_ns - 5_000, at_ns + 5_000);
            self.span(host, times, &format!("{phase}{id}"), &args);
            let on = Simulation::process(host).main_thread();
            let line = on.flow(phase, self.clock_ns(host, at_ns), "global", id);
            self.lines[host].push((at_ns, line));
        }
    }

    /// Spans at random times, a few of them in one another.
    pub(crate) fn spans(&mut self, each: i64) {
        let slot = self.length_ns / each;
        for host in 0..self.hosts.len() {
            for number in 0..each {
                let begin_ns = slot * number + 20_000 + self.below(slot / 4);
                let end_ns = begin_ns + 1_000 + self.below(slot / 4);
                let name = format!("h{host}-{number}");
                self.span(host, (begin_ns, end_ns), &name, "");
                let middle_ns = begin_ns + (end_ns - begin_ns) / 2;
                self.span(host, (begin_ns, middle_ns), &format!("{name}-in"), "");
            }
        }
    }

    /// Messages between random hosts of some, so that each gets and sends about `each`.
    pub(crate) fn messages(&mut self, hosts: &[usize], each: usize, least_ns: i64) {
        let first = self.happened.len();
        for number in 0..each * hosts.len() {
            let from = hosts[number % hosts.len()];
            let other = 1 + self.below(i64::try_from(hosts.len() - 1).unwrap());
            let other = usize::try_from(other).unwrap();
            let to = hosts[(number + other) % hosts.len()];
            let sent_ns = 20_000 + self.below(self.length_ns - SECOND_NS);
            let late_ns = [20_000_000, 100_000][usize::from(self.below(4) > 0)];
            let takes_ns = least_ns + self.below(late_ns);
            self.message((from, to), sent_ns, takes_ns, (first + number) as u64);
        }
    }

    /// Writes a fragment for each host.
    pub(crate) fn write(&mut self) -> RunDir {
        let dir = RunDir::new();
        for number in 0..self.hosts.len() {
            let mut fragment = self.fragment(number);
            let mut lines = std::mem::take(&mut self.lines[number]);
            lines.sort_by_key(|line| line.0);
            let lines: Vec<String> = lines.into_iter().map(|line| line.1).collect();
            fragment.block(1, 0, &stream(&lines));
            fragment.write_here(&dir.fragments());
        }
        dir
    }

    /// One with a header and the anchors of all the time.
    fn fragment(&mut self, number: usize) -> Fragment {
        let process = Simulation::process(number);
        let mut fragment = fragment_on(&format!("host-{number}"), &process);
        let host = self.hosts[number].clone();
        let mut at_ns = 0;
        while host.has_anchors && at_ns <= self.length_ns {
            let uncertainty_ns = 30 + self.below(400);
            let noise_ns = self.below(2 * uncertainty_ns) - uncertainty_ns;
            let args = format!(
                r#""monotonic_ns":{},"realtime_ns":{},"uncertainty_ns":{uncertainty_ns}"#,
                host.monotonic_ns(at_ns),
                host.wall_ns(at_ns) + noise_ns
            );
            fragment.line(&process.main_thread().metadata("sa_anchor", &args));
            at_ns += 5 * SECOND_NS;
        }
        fragment
    }

    /// What is said of a host's clock.
    pub(crate) fn clock<'a>(&self, merged: &'a Merged, host: usize) -> &'a Value {
        let name = format!("host-{host}");
        let clocks = merged.report.0["clocks"].as_array().unwrap();
        clocks
            .iter()
            .find(|clock| clock["host"] == name.as_str())
            .unwrap()
    }

    /// How far each host's events are from the truth, at most; all spans must be there, in their order, and nest.
    pub(crate) fn errors(&self, merged: &Merged) -> Vec<u64> {
        let base_ns = merged.report.0["base_ns"].as_i64().unwrap();
        let mut errors = vec![0; self.hosts.len()];
        let mut order: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.hosts.len()];
        let mut seen = 0;
        for event in merged.trace.phase("X") {
            let happened = &self.happened[event["name"].as_str().unwrap()];
            let begin_ns = ns(&event["ts"]) + base_ns;
            let end_ns = begin_ns + ns(&event["dur"]);
            assert!(end_ns >= begin_ns, "{event}");
            let (host, (begin, end)) = (happened.host, happened.times);
            for (found, true_ns) in [(begin_ns, begin), (end_ns, end)] {
                let truth = self.hosts[0].monotonic_ns(true_ns);
                errors[host] = found.abs_diff(truth).max(errors[host]);
                order[host].push((self.hosts[host].monotonic_ns(true_ns), found));
            }
            seen += 1;
        }
        assert_eq!(seen, self.happened.len());
        for times in &mut order {
            times.sort_unstable();
            let is_kept = times.is_sorted_by_key(|time| time.1);
            assert!(is_kept, "the order of one host's events changed");
        }
        errors
    }

    /// Asserts that all errors are as small as is said.
    pub(crate) fn assert_within(&self, merged: &Merged) {
        for (host, error) in self.errors(merged).into_iter().enumerate() {
            let clock = self.clock(merged, host);
            if let Some(uncertainty_ns) = clock["uncertainty_ns"].as_u64() {
                assert!(error <= uncertainty_ns, "off by {error} ns: {clock}");
            }
        }
    }
}

/// Arrows that are there and go forward in a trace, of all that were recorded.
pub(crate) fn arrows(merged: &Merged) -> (usize, usize) {
    let ends = |phase: &str| -> HashMap<String, i64> {
        let all = merged.trace.phase(phase).into_iter();
        let own = all.filter(|event| event["cat"] == "flow");
        own.map(|event| (event["id"].to_string(), ns(&event["ts"])))
            .collect()
    };
    let (starts, ends) = (ends("s"), ends("f"));
    let forward = ends
        .iter()
        .filter(|(id, at)| starts.get(*id).is_some_and(|start| start <= *at));
    (forward.count(), ends.len())
}
