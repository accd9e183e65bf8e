//! Clocks of several hosts on one axis, compared with the truth: the hosts are simulated, so the
//! true time of every event is known.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::random::Rng;
use crate::trace::ns;
use crate::window::{Events, base_ns, comparable, naive, sorted};
use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

pub(crate) const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
const LENGTH_NS: i64 = 400 * SECOND_NS;
const EPOCH_NS: i64 = 1_795_248_902_000_000_000;

/// A simulated host and its clocks.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Time of its monotonic clock at the beginning.
    begin_ns: i64,
    drift_ppm: i64,
    /// Time in ns by which its wall clock is ahead of the truth.
    wall_ns: i64,
    /// Time at which its wall clock is set, and how far it is ahead before that.
    step: Option<(i64, i64)>,
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

    /// Returns the time of its monotonic clock.
    fn monotonic_ns(&self, true_ns: i64) -> i64 {
        self.begin_ns + true_ns + true_ns / 1_000 * self.drift_ppm / 1_000
    }

    fn wall_ns(&self, true_ns: i64) -> i64 {
        let step = self.step.filter(|(at, _)| true_ns < *at);
        EPOCH_NS + true_ns + self.wall_ns + step.map_or(0, |(_, ahead)| ahead)
    }
}

/// Returns a fragment of a process on this host that only contains the header.
pub(crate) fn fragment_on(host: &str, process: &Process) -> Fragment {
    let mut fragment = Fragment::foreign(process.pid);
    let header = process.header(0);
    fragment.line(&header.replace("node-3", host).replace("0b1f7a3e", host));
    fragment
}

/// Hosts and the spans on them.
pub(crate) struct Simulation {
    hosts: Vec<Host>,
    /// Host of each span, and its true begin and end, by name.
    spans: HashMap<String, (usize, (i64, i64))>,
    /// Name of the NPU track with the collectives.
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
            spans: HashMap::new(),
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

    /// Adds a span on a host. Its name must be new.
    fn span(&mut self, host: usize, times: (i64, i64), name: &str, args: &str) {
        let on = Simulation::process(host).main_thread();
        self.slice((host, on), times, name, args);
    }

    /// Adds an all_reduce on the NPU of a host. `nth` is part of its name.
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
        self.spans.insert(name.to_owned(), (host, times));
    }

    /// Adds a message from one host to another: a flow between two spans of 10 µs.
    fn message(&mut self, (from, to): (usize, usize), sent_ns: i64, takes_ns: i64, id: u64) {
        let args = format!(r#""request_id":"r{id}""#);
        for (phase, host, at_ns) in [("s", from, sent_ns), ("f", to, sent_ns + takes_ns)] {
            let times = (at_ns - 5_000, at_ns + 5_000);
            self.span(host, times, &format!("{phase}{id}"), &args);
            let on = Simulation::process(host).main_thread();
            let line = on.flow(phase, self.clock_ns(host, at_ns), "global", id);
            self.lines[host].push((at_ns, line));
        }
    }

    /// Adds messages both ways between the first host and some others, evenly distributed over the
    /// run.
    fn talk(&mut self, (hosts, each): (usize, i64)) {
        let mut id = 1_000;
        for number in 0..each {
            for pair in (1..hosts).flat_map(|host| [(0, host), (host, 0)]) {
                id += 1;
                let at_ns = SECOND_NS + (self.length_ns - 2 * SECOND_NS) / each * number;
                let sent_ns = at_ns + i64::try_from(id).unwrap() * 7_000_000 % SECOND_NS;
                self.message(pair, sent_ns, 80_000 + 1_000 * (number % 7), id);
            }
        }
    }

    /// Adds messages from the first host to another one, one per second.
    fn one_way(&mut self, to: usize, many: u64, takes_ns: i64) {
        for (number, nth) in (0..many).zip(0..) {
            let sent_ns = SECOND_NS * (1 + nth);
            self.message((0, to), sent_ns, takes_ns + 1_000 * nth, 1_000 + number);
        }
    }

    /// Adds spans at random times, some of them nested.
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

    /// Adds messages between random pairs of the first hosts. Each host receives and sends about
    /// `each`.
    fn messages(&mut self, hosts: usize, each: usize, least_ns: i64) {
        let first = self.spans.len();
        for number in 0..each * hosts {
            let other = 1 + self.rng.below(hosts - 1);
            let pair = (number % hosts, (number + other) % hosts);
            let sent_ns = 20_000 + self.below(self.length_ns - SECOND_NS);
            let late_ns = [20_000_000, 100_000][usize::from(self.below(4) > 0)];
            let takes_ns = least_ns + self.below(late_ns);
            self.message(pair, sent_ns, takes_ns, (first + number) as u64);
        }
    }

    /// Writes a fragment for each host, with anchors for the whole run.
    pub(crate) fn write(&mut self) -> RunDir {
        let dir = RunDir::new();
        for number in 0..self.hosts.len() {
            let process = Simulation::process(number);
            let mut fragment = fragment_on(&format!("host-{number}"), &process);
            let host = self.hosts[number].clone();
            let many = if host.has_anchors {
                self.length_ns / (5 * SECOND_NS) + 1
            } else {
                0
            };
            for at_ns in (0..many).map(|nth| nth * 5 * SECOND_NS) {
                let uncertainty_ns = 30 + self.below(400);
                let noise_ns = self.below(2 * uncertainty_ns) - uncertainty_ns;
                let args = format!(
                    r#""monotonic_ns":{},"realtime_ns":{},"uncertainty_ns":{uncertainty_ns}"#,
                    host.monotonic_ns(at_ns),
                    host.wall_ns(at_ns) + noise_ns
                );
                fragment.line(&process.main_thread().metadata("sa_anchor", &args));
            }
            let mut lines = std::mem::take(&mut self.lines[number]);
            lines.sort_by_key(|line| line.0);
            let lines: Vec<String> = lines.into_iter().map(|line| line.1).collect();
            fragment.block(1, 0, &stream(&lines));
            fragment.write_here(&dir.fragments());
        }
        dir
    }

    /// Returns the report's entry for a host's clock.
    pub(crate) fn clock<'a>(&self, merged: &'a Merged, host: usize) -> &'a Value {
        let name = format!("host-{host}");
        let clocks = merged.report.0["clocks"].as_array().unwrap();
        clocks
            .iter()
            .find(|clock| clock["host"] == name.as_str())
            .unwrap()
    }

    /// Returns the maximum error of each host's times. All spans must be there, in their order, and
    /// nest.
    fn errors(&self, merged: &Merged) -> Vec<u64> {
        let base_ns = merged.report.0["base_ns"].as_i64().unwrap();
        let mut errors = vec![0; self.hosts.len()];
        let mut order: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.hosts.len()];
        let mut count = 0;
        for event in merged.trace.phase("X") {
            let (host, (begin, end)) = self.spans[event["name"].as_str().unwrap()];
            let begin_ns = ns(&event["ts"]) + base_ns;
            let end_ns = begin_ns + ns(&event["dur"]);
            assert!(end_ns >= begin_ns, "{event}");
            for (found, true_ns) in [(begin_ns, begin), (end_ns, end)] {
                let truth = self.hosts[0].monotonic_ns(true_ns);
                errors[host] = found.abs_diff(truth).max(errors[host]);
                order[host].push((self.hosts[host].monotonic_ns(true_ns), found));
            }
            count += 1;
        }
        assert_eq!(count, self.spans.len());
        for times in &mut order {
            times.sort_unstable();
            let is_kept = times.is_sorted_by_key(|time| time.1);
            assert!(is_kept, "the order of one host's events changed");
        }
        errors
    }

    /// Asserts that no error exceeds the reported uncertainty.
    pub(crate) fn assert_within(&self, merged: &Merged) {
        for (host, error) in self.errors(merged).into_iter().enumerate() {
            let clock = self.clock(merged, host);
            if let Some(uncertainty_ns) = clock["uncertainty_ns"].as_u64() {
                assert!(error <= uncertainty_ns, "off by {error} ns: {clock}");
            }
        }
    }

    /// Merges the run, and asserts that no error exceeds the reported uncertainty.
    fn merged(&mut self) -> Merged {
        let merged = Merged::new(&["--no-link-requests"], &[self.write().path()]);
        self.assert_within(&merged);
        merged
    }

    /// Asserts the method by which a host's clock was placed, and the number of flows that
    /// contradict it.
    fn assert_placed(&self, merged: &Merged, host: usize, method: &str, contradicting: u64) {
        let clock = self.clock(merged, host);
        assert_eq!(clock["method"], method, "{clock}");
        assert_eq!(clock["contradicting_flows"], contradicting, "{clock}");
    }

    fn assert_drift(&self, host: usize, clock: &Value, most: f64) {
        let drift = self.hosts[0].drift_ppm - self.hosts[host].drift_ppm;
        let found = clock["drift_ppm"].as_f64().unwrap();
        assert!((found - drift as f64).abs() < most, "{drift}: {clock}");
    }
}

fn uncertainty_ns(clock: &Value) -> u64 {
    clock["uncertainty_ns"].as_u64().unwrap()
}

/// Counts the flows in a trace that go forward in time, and all recorded flows.
fn arrows(merged: &Merged) -> (usize, usize) {
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

/// Returns hosts with clocks that drift and were started an hour apart.
fn hosts(many: i64) -> Vec<Host> {
    (0..many)
        .map(|number| Host::new((1 + number) * HOUR_NS, 7 * number - 20, 1_000_000))
        .collect()
}

/// Returns eight hosts that were booted hours apart. Their clocks drift by up to 100 ppm, and their
/// wall clocks are up to 9 ms off. One wall clock is set during the run, and one host has no
/// anchors.
fn eight(seed: u64) -> Simulation {
    let mut dice = Simulation::new(Vec::new(), LENGTH_NS, seed);
    let mut host = |_| {
        let begin_ns = HOUR_NS + dice.below(9 * HOUR_NS);
        let (drift, wall) = (dice.below(201) - 100, dice.below(18_000_000) - 9_000_000);
        Host::new(begin_ns, drift, wall)
    };
    let mut hosts: Vec<Host> = (0..8).map(&mut host).collect();
    (hosts[1].drift_ppm, hosts[2].drift_ppm) = (100, -100);
    hosts[3].step = Some((200 * SECOND_NS + 1_234_567, -1_700_000_000));
    hosts[5].has_anchors = false;
    let mut simulation = Simulation::new(hosts, LENGTH_NS, seed + 1_000);
    simulation.spans(40);
    simulation
}

/// Returns the recorded events of a trace, as they were before a window cut them.
fn events(merged: &Merged) -> Events {
    let shown = merged.trace.shown();
    sorted(shown.map(|event| comparable(event, base_ns(merged))))
}

#[test]
fn every_event_of_eight_hosts_is_within_the_reported_error() {
    for seed in 0..6 {
        let mut simulation = eight(seed);
        simulation.messages(8, 400, 60_000);
        let dir = simulation.write();
        let merged = Merged::new(&[], &[dir.path()]);
        simulation.assert_within(&merged);
        for host in 1..8 {
            let methods = ["wall_clock_and_flows", "flows"];
            simulation.assert_placed(&merged, host, methods[usize::from(host == 5)], 0);
            let clock = simulation.clock(&merged, host);
            assert_eq!(clock["steps"], u64::from(host == 3), "{clock}");
            // The bound is 20 ms without flows.
            assert!(uncertainty_ns(clock) < 6_000_000, "{clock}");
            simulation.assert_drift(host, clock, 12.0);
        }
        let other_data = &merged.trace.document["otherData"];
        assert_eq!(other_data["clocks"], merged.report.0["clocks"]);
        let (forward, all) = arrows(&merged);
        assert_eq!(all, 3_200);
        assert!(forward * 100 >= all * 99, "{forward} of {all}");

        // The flows of requests start and end at begins of spans.
        assert_eq!(merged.report.0["links"]["requests"], 3_200);
        let spans = merged.trace.phase("X").into_iter();
        let spans: BTreeSet<i64> = spans.map(|event| ns(&event["ts"])).collect();
        let mut links = merged.trace.links();
        assert!(links.all(|link| spans.contains(&ns(&link["ts"]))));

        let by_anchors = Merged::new(&["--clock", "anchors"], &[dir.path()]);
        simulation.assert_within(&by_anchors);
        for host in [1, 2, 3, 4, 6, 7] {
            let clock = simulation.clock(&by_anchors, host);
            assert_eq!(clock["method"], "wall_clock", "{clock}");
            simulation.assert_drift(host, clock, 0.5);
            let most = if host == 3 { 50_000_000 } else { 21_500_000 };
            let off = uncertainty_ns(clock);
            assert!((20_000_000..most).contains(&off), "{clock}");
        }
        let lost = simulation.clock(&by_anchors, 5);
        assert_eq!(lost["method"], "none");
        assert!(lost["uncertainty_ns"].is_null());
        let left = Merged::new(&["--clock=none"], &[dir.path()]);
        for host in 1..8 {
            let clock = simulation.clock(&left, host);
            assert_eq!(clock["method"], "none");
            assert_eq!(clock["shift_ns"], 0);
        }

        if seed > 0 {
            continue;
        }
        let by_time = Merged::new(&["--sort"], &[dir.path()]);
        assert_eq!(events(&by_time), events(&merged));
        let timed = by_time.trace.events.iter();
        let timed = timed.filter(|event| event["ph"] != "M");
        assert!(timed.is_sorted_by_key(|event| ns(&event["ts"])));
        let window = Merged::new(&["--from=100s", "--to=150s"], &[dir.path()]);
        let edges = (100 * SECOND_NS, 150 * SECOND_NS);
        let expected = naive(merged.trace.shown(), base_ns(&merged), edges, |_| false);
        assert!(expected.len() > 100 && events(&window) == expected);
    }
}

#[test]
fn flows_one_way_bound_a_clock_on_one_side() {
    let mut hosts = vec![Host::new(HOUR_NS, 0, 0), Host::new(7 * HOUR_NS, 0, 0)];
    hosts[1].has_anchors = false;
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 3);
    simulation.one_way(1, 50, 2_000_000);
    let dir = simulation.write();
    let merged = Merged::new(&[], &[dir.path()]);
    simulation.assert_placed(&merged, 1, "flows", 0);
    assert!(simulation.clock(&merged, 1)["uncertainty_ns"].is_null());
    assert!(simulation.errors(&merged)[1] <= 2_100_000);
    assert_eq!(arrows(&merged), (50, 50));
    let text = Ended::run(trace_merge().arg(dir.path())).stderr;
    for words in ["clock of host-1: placed by flows alone", "unknown error"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn flows_both_ways_reveal_a_wall_clock_that_is_an_hour_off() {
    let host = |hours| Host::new(hours * HOUR_NS, 10 * hours, 1_000_000);
    let mut hosts: Vec<Host> = (1..4).map(host).collect();
    hosts[2].wall_ns = -HOUR_NS;
    let mut simulation = Simulation::new(hosts.clone(), LENGTH_NS, 4);
    simulation.messages(3, 100, 80_000);
    let merged = simulation.merged();
    simulation.assert_placed(&merged, 2, "flows", 0);
    let clock = simulation.clock(&merged, 2);
    let off = clock["wall_off_ns"].as_i64().unwrap();
    assert!(off.abs_diff(-HOUR_NS) < 50_000_000, "{clock}");
    // With flows in one direction, it is unknown which clock is wrong, so the anchors are trusted.
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 4);
    simulation.one_way(2, 30, 90_000);
    let merged = Merged::new(&[], &[simulation.write().path()]);
    simulation.assert_placed(&merged, 2, "wall_clock", 30);
}

#[test]
fn an_unknown_host_does_not_affect_a_long_run() {
    let mut hosts = hosts(4);
    // A host without anchors or flows that was booted months ago.
    let mut stray = Host::new(2_400 * HOUR_NS, 0, 0);
    stray.has_anchors = false;
    hosts.push(stray);
    let mut simulation = Simulation::new(hosts, 12 * HOUR_NS, 31);
    simulation.talk((4, 2_000));
    simulation.span(4, (SECOND_NS, 2 * SECOND_NS), "stray", "");
    let merged = simulation.merged();
    for host in 1..4 {
        simulation.assert_placed(&merged, host, "wall_clock_and_flows", 0);
        // Messages are up to 22 s apart. In that time, wall clocks may drift from the monotonic
        // ones by some ms.
        assert!(uncertainty_ns(simulation.clock(&merged, host)) < 40_000_000);
    }
    assert_eq!(simulation.clock(&merged, 4)["method"], "none");
}

#[test]
fn a_message_that_goes_back_within_the_clock_error_is_ignored() {
    for (many, has_anchors, each, back_ms) in [
        (2, true, 2_000, 5),
        (2, false, 2_000, 5),
        (3, true, 1_000, 6),
    ] {
        let mut hosts = hosts(many);
        hosts[1].has_anchors = has_anchors;
        let many = hosts.len();
        let mut simulation = Simulation::new(hosts, LENGTH_NS, 28 + 2 * many as u64);
        simulation.talk((many, each));
        let pair = (many - 2, many - 1);
        simulation.message(pair, 200 * SECOND_NS, -1_000_000 * back_ms, 7);
        if !has_anchors {
            simulation.message(pair, 300 * SECOND_NS, -90 * SECOND_NS, 8);
        }
        let merged = simulation.merged();
        for host in 1..many {
            let clock = simulation.clock(&merged, host);
            assert_eq!(clock["contradicting_flows"], 2 - u64::from(has_anchors));
            assert!(uncertainty_ns(clock) < 1_000_000, "{clock}");
        }
    }
}

#[test]
fn flows_alone_place_all_if_the_reference_clock_is_wrong() {
    let mut hosts = hosts(70);
    hosts[0].wall_ns = HOUR_NS;
    for (host, drift_ppm) in hosts.iter_mut().zip((-20..20).cycle()) {
        host.drift_ppm = drift_ppm;
    }
    let mut simulation = Simulation::new(hosts, 100 * SECOND_NS, 33);
    simulation.talk((70, 20));
    let merged = simulation.merged();
    for host in 1..70 {
        assert_eq!(simulation.clock(&merged, host)["method"], "flows");
    }
}
