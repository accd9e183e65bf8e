//! Hosts whose clocks know nothing of each other, on one axis, against the truth.

use crate::hosts::{Host, SECOND_NS, Simulation, arrows};
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::trace::ns;
use crate::window::{Events, base_ns, comparable, naive, sorted};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeSet;

const HOUR_NS: i64 = 3_600 * SECOND_NS;
const LENGTH_NS: i64 = 400 * SECOND_NS;
const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Eight hosts that were booted hours apart, whose clocks drift by up to 100 ppm and whose wall clocks are up to 9 ms wrong. One of them is set while it is
/// recorded, and one has no anchors.
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

/// How a host's clock was placed, and how many flows contradict that.
fn assert_placed(clock: &Value, method: &str, contradicting: u64) {
    assert_eq!(clock["method"], method, "{clock}");
    assert_eq!(clock["contradicting_flows"], contradicting, "{clock}");
}

fn assert_drift(simulation: &Simulation, host: usize, clock: &Value, most: f64) {
    let drift = simulation.hosts[0].drift_ppm - simulation.hosts[host].drift_ppm;
    let found = clock["drift_ppm"].as_f64().unwrap();
    assert!((found - drift as f64).abs() < most, "{drift}: {clock}");
}

fn uncertainty_ns(clock: &Value) -> u64 {
    clock["uncertainty_ns"].as_u64().unwrap()
}

#[test]
fn every_event_of_eight_hosts_is_where_it_was_but_for_what_is_said() {
    for seed in 0..6 {
        let mut simulation = eight(seed);
        simulation.messages(&ALL, 400, 60_000);
        let dir = simulation.write();
        let merged = Merged::of(&[], &[dir.path()]);
        simulation.assert_within(&merged);
        for host in 1..8 {
            let clock = simulation.clock(&merged, host);
            let methods = ["wall_clock_and_flows", "flows"];
            assert_placed(clock, methods[usize::from(host == 5)], 0);
            assert_eq!(clock["steps"], u64::from(host == 3), "{clock}");
            // 20 ms without flows.
            assert!(uncertainty_ns(clock) < 6_000_000, "{clock}");
            assert_drift(&simulation, host, clock, 12.0);
        }
        let other_data = &merged.trace.document["otherData"];
        assert_eq!(other_data["clocks"], merged.report.0["clocks"]);
        let (forward, all) = arrows(&merged);
        assert_eq!(all, 3_200);
        assert!(forward * 100 >= all * 99, "{forward} of {all}");
    }
}

#[test]
fn anchors_alone_keep_what_they_promise() {
    for seed in 10..14 {
        let mut simulation = eight(seed);
        simulation.messages(&ALL, 20, 60_000);
        let dir = simulation.write();
        let merged = Merged::of(&["--clock", "anchors"], &[dir.path()]);
        simulation.assert_within(&merged);
        for host in [1, 2, 3, 4, 6, 7] {
            let clock = simulation.clock(&merged, host);
            assert_eq!(clock["method"], "wall_clock", "{clock}");
            assert_drift(&simulation, host, clock, 0.5);
            let most = if host == 3 { 50_000_000 } else { 21_500_000 };
            let off = uncertainty_ns(clock);
            assert!((20_000_000..most).contains(&off), "{clock}");
        }
        let lost = simulation.clock(&merged, 5);
        assert_eq!(lost["method"], "none");
        assert!(lost["uncertainty_ns"].is_null());
        let left = Merged::of(&["--clock=none"], &[dir.path()]);
        for host in 1..8 {
            let clock = simulation.clock(&left, host);
            assert_eq!(clock["method"], "none");
            assert_eq!(clock["shift_ns"], 0);
        }
    }
}

/// Messages from one host to another, one a second.
fn one_way(simulation: &mut Simulation, to: usize, many: u64, takes_ns: i64) {
    for number in 0..many {
        let nth = i64::try_from(number).unwrap();
        let sent_ns = SECOND_NS * (1 + nth);
        simulation.message((0, to), sent_ns, takes_ns + 1_000 * nth, 1_000 + number);
    }
}

#[test]
fn flows_one_way_bound_a_clock_on_one_side() {
    let mut hosts = vec![Host::new(HOUR_NS, 0, 0), Host::new(7 * HOUR_NS, 0, 0)];
    hosts[1].has_anchors = false;
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 3);
    one_way(&mut simulation, 1, 50, 2_000_000);
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    let clock = simulation.clock(&merged, 1);
    assert_placed(clock, "flows", 0);
    assert!(clock["uncertainty_ns"].is_null());
    assert!(simulation.errors(&merged)[1] <= 2_100_000);
    assert_eq!(arrows(&merged), (50, 50));
    let text = Ended::of(trace_merge().arg(dir.path())).stderr;
    for words in ["clock of host-1: placed by flows alone", "off by any time"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_wall_clock_that_is_an_hour_off_is_found_out_by_flows_both_ways() {
    let host = |hours| Host::new(hours * HOUR_NS, 10 * hours, 1_000_000);
    let mut hosts: Vec<Host> = (1..4).map(host).collect();
    hosts[2].wall_ns = -HOUR_NS;
    let mut simulation = Simulation::new(hosts.clone(), LENGTH_NS, 4);
    simulation.messages(&[0, 1, 2], 100, 80_000);
    let merged = Merged::of(&[], &[simulation.write().path()]);
    simulation.assert_within(&merged);
    let clock = simulation.clock(&merged, 2);
    assert_placed(clock, "flows", 0);
    let off = clock["wall_off_ns"].as_i64().unwrap();
    assert!(off.abs_diff(-HOUR_NS) < 50_000_000, "{clock}");
    // With flows one way nobody knows which is wrong: its anchors stand.
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 4);
    one_way(&mut simulation, 2, 30, 90_000);
    let merged = Merged::of(&[], &[simulation.write().path()]);
    assert_placed(simulation.clock(&merged, 2), "wall_clock", 30);
}

#[test]
fn one_host_alone_is_what_it_is_however_clocks_are_brought_together() {
    let dir = RunDir::new();
    for pid in [50, 51] {
        let process = Process {
            offset_ns: 7_000_000 * i64::from(pid - 50),
            ..Process::new(pid)
        };
        let mut fragment = process.fragment();
        fragment.line(&process.anchor(5_000_000_000));
        let stepped = process.anchor(15_000_000_000);
        fragment.line(&stepped.replace("1795248917", "1795248900"));
        let on = process.main_thread();
        let span = |n: u64| on.span(5_000_000_000 + n * 1_000_003, 999, "a", "");
        let mut lines: Vec<String> = (0..50).map(span).collect();
        lines.extend(["s", "f"].map(|phase| on.flow(phase, 5_000_000_500, "global", 9)));
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    let merged = ["flows", "anchors", "none"].map(|by| Merged::of(&["--clock", by], &[dir.path()]));
    assert!(merged.iter().all(|one| one.bytes == merged[0].bytes));
    assert!(merged[0].trace.document["otherData"]["clocks"].is_null());
}

/// The recorded events of a trace, as they were before a window cut them.
fn events(merged: &Merged) -> Events {
    sorted(
        merged
            .trace
            .shown()
            .map(|event| comparable(event, base_ns(merged))),
    )
}

#[test]
fn windows_and_the_order_of_time_show_what_drifting_clocks_show() {
    let mut simulation = eight(21);
    simulation.messages(&ALL, 100, 60_000);
    let dir = simulation.write();
    let all = Merged::of(&[], &[dir.path()]);
    // The flows of requests start and end where spans do.
    assert_eq!(all.report.0["links"]["requests"], 800);
    let spans = all.trace.phase("X").into_iter();
    let spans: BTreeSet<i64> = spans.map(|event| ns(&event["ts"])).collect();
    let mut links = all.trace.links();
    assert!(links.all(|link| spans.contains(&ns(&link["ts"]))));
    let by_time = Merged::of(&["--sort"], &[dir.path()]);
    assert_eq!(events(&by_time), events(&all));
    let timed = by_time.trace.events.iter();
    let timed = timed.filter(|event| event["ph"] != "M");
    assert!(timed.is_sorted_by_key(|event| ns(&event["ts"])));
    let options = ["--from=100s", "--to=150s"];
    let window = Merged::of(&options, &[dir.path()]);
    let edges = (100 * SECOND_NS, 150 * SECOND_NS);
    let expected = naive(all.trace.shown(), base_ns(&all), edges, |_| false);
    assert!(expected.len() > 100 && events(&window) == expected);
}
