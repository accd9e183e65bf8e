//! Hosts whose clocks know nothing of each other, on one axis, against the truth.

use crate::hosts::{Host, SECOND_NS, Simulation, arrows};
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::perfetto;
use crate::trace::{ns, whole};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;

const HOUR_NS: i64 = 3_600 * SECOND_NS;
const LENGTH_NS: i64 = 400 * SECOND_NS;

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

#[test]
fn every_event_of_eight_hosts_is_where_it_was_but_for_what_is_said() {
    for seed in 0..6 {
        let mut simulation = eight(seed);
        simulation.messages(&[0, 1, 2, 3, 4, 5, 6, 7], 400, 60_000);
        let dir = simulation.write();
        let merged = Merged::of(&[], &[dir.path()]);
        simulation.assert_within(&merged);
        for host in 1..8 {
            let clock = simulation.clock(&merged, host);
            let method = if host == 5 {
                "flows"
            } else {
                "wall_clock_and_flows"
            };
            assert_eq!(clock["method"], method, "{clock}");
            assert_eq!(
                (&clock["contradicting_flows"], &clock["steps"]),
                (&0.into(), &u64::from(host == 3).into()),
                "{clock}"
            );
            // 20 ms without flows.
            assert!(
                clock["uncertainty_ns"].as_u64().unwrap() < 6_000_000,
                "{clock}"
            );
            let drift = simulation.hosts[0].drift_ppm - simulation.hosts[host].drift_ppm;
            let found = clock["drift_ppm"].as_f64().unwrap();
            assert!((found - drift as f64).abs() < 12.0, "{drift}: {clock}");
        }
        assert_eq!(
            merged.trace.document["otherData"]["clocks"],
            merged.report.0["clocks"]
        );
        let (forward, all) = arrows(&merged);
        assert_eq!(all, 3_200);
        assert!(forward * 100 >= all * 99, "{forward} of {all}");
    }
}

#[test]
fn anchors_alone_keep_what_they_promise() {
    for seed in 10..14 {
        let mut simulation = eight(seed);
        simulation.messages(&[0, 1, 2, 3, 4, 5, 6, 7], 20, 60_000);
        let dir = simulation.write();
        let merged = Merged::of(&["--clock", "anchors"], &[dir.path()]);
        simulation.assert_within(&merged);
        for host in [1, 2, 3, 4, 6, 7] {
            let clock = simulation.clock(&merged, host);
            assert_eq!(clock["method"], "wall_clock", "{clock}");
            let drift = simulation.hosts[0].drift_ppm - simulation.hosts[host].drift_ppm;
            let found = clock["drift_ppm"].as_f64().unwrap();
            assert!((found - drift as f64).abs() < 0.5, "{drift}: {clock}");
            let most = if host == 3 { 50_000_000 } else { 21_500_000 };
            let off = clock["uncertainty_ns"].as_u64().unwrap();
            assert!((20_000_000..most).contains(&off), "{clock}");
        }
        let lost = simulation.clock(&merged, 5);
        assert_eq!(
            (&lost["method"], &lost["uncertainty_ns"]),
            (&"none".into(), &().into())
        );
        let left = Merged::of(&["--clock=none"], &[dir.path()]);
        for host in 1..8 {
            let clock = simulation.clock(&left, host);
            assert_eq!(
                (&clock["method"], &clock["shift_ns"]),
                (&"none".into(), &0.into())
            );
        }
    }
}

#[test]
fn flows_one_way_bound_a_clock_on_one_side() {
    let hosts = vec![
        Host::new(HOUR_NS, 0, 0),
        Host {
            has_anchors: false,
            ..Host::new(7 * HOUR_NS, 0, 0)
        },
    ];
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 3);
    for number in 0..50 {
        simulation.message(
            (0, 1),
            SECOND_NS * (1 + number),
            2_000_000 + 1_000 * number,
            1_000 + number.unsigned_abs(),
        );
    }
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    let clock = simulation.clock(&merged, 1);
    assert_eq!(
        (&clock["method"], &clock["uncertainty_ns"]),
        (&"flows".into(), &().into())
    );
    assert!(simulation.errors(&merged)[1] <= 2_100_000);
    assert_eq!(arrows(&merged), (50, 50));
    let text = Ended::of(trace_merge().arg(dir.path())).stderr;
    assert!(
        text.contains("clock of host-1: placed by flows alone") && text.contains("off by any time"),
        "{text}"
    );
}

#[test]
fn a_wall_clock_that_is_an_hour_off_is_found_out_by_flows_both_ways() {
    let mut hosts: Vec<Host> = (1..4)
        .map(|hours| Host::new(hours * HOUR_NS, 10 * hours, 1_000_000))
        .collect();
    hosts[2].wall_ns = -HOUR_NS;
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 4);
    simulation.messages(&[0, 1, 2], 100, 80_000);
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    simulation.assert_within(&merged);
    let clock = simulation.clock(&merged, 2);
    assert_eq!(
        (&clock["method"], &clock["contradicting_flows"]),
        (&"flows".into(), &0.into()),
        "{clock}"
    );
    let off = clock["wall_off_ns"].as_i64().unwrap();
    assert!(off.abs_diff(-HOUR_NS) < 50_000_000, "{clock}");
    // With flows one way nobody knows which is wrong: its anchors stand.
    let hosts = simulation.hosts.clone();
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 4);
    for number in 0..30 {
        simulation.message(
            (0, 2),
            SECOND_NS * (1 + number),
            90_000,
            1_000 + number.unsigned_abs(),
        );
    }
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    let clock = simulation.clock(&merged, 2);
    assert_eq!(
        (&clock["method"], &clock["contradicting_flows"]),
        (&"wall_clock".into(), &30.into()),
        "{clock}"
    );
}

#[test]
fn flows_that_contradict_each_other_are_counted_and_left_out() {
    let hosts = (1..4)
        .map(|hours| Host::new(hours * HOUR_NS, 5 * hours, 1_000_000))
        .collect();
    let mut simulation = Simulation::new(hosts, LENGTH_NS, 5);
    simulation.messages(&[0, 1, 2], 400, 80_000);
    // A few that share their ids with older ones.
    for number in 0..3 {
        simulation.message(
            (1, 2),
            SECOND_NS * (100 + number),
            -90 * SECOND_NS,
            50_000 + number.unsigned_abs(),
        );
    }
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    simulation.assert_within(&merged);
    for (host, against) in [(0, 0), (1, 3), (2, 3)] {
        let clock = simulation.clock(&merged, host);
        assert_eq!(clock["contradicting_flows"], against, "{clock}");
        assert!(
            clock["uncertainty_ns"].as_u64().unwrap() < 6_000_000,
            "{clock}"
        );
    }
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
        fragment.line(
            &process
                .anchor(15_000_000_000)
                .replace("1795248917", "1795248900"),
        );
        let on = process.main_thread();
        let lines: Vec<String> = (0..50)
            .map(|n| on.span(5_000_000_000 + n * 1_000_003, 999, "a", ""))
            .collect();
        let flows = ["s", "f"].map(|phase| on.flow(phase, 5_000_000_500, "global", 9));
        fragment.block(1, 0, &stream(&[lines, flows.to_vec()].concat()));
        fragment.write_here(&dir.fragments());
    }
    let merged = ["flows", "anchors", "none"].map(|by| Merged::of(&["--clock", by], &[dir.path()]));
    assert!(merged.iter().all(|one| one.bytes == merged[0].bytes));
    assert!(merged[0].trace.document["otherData"]["clocks"].is_null());
}

/// Everything of an event, as it was before a window cut it, except the ids that depend on what else there is.
fn texts(merged: &Merged) -> Vec<String> {
    let base_ns = merged.report.0["base_ns"].as_i64().unwrap();
    let shown = merged
        .trace
        .events
        .iter()
        .filter(|event| event["ph"] != "M");
    let mut texts: Vec<String> = shown
        .map(|event| {
            let (event, _) = whole(event);
            let ts_ns = ns(&event["ts"]) + base_ns;
            format!(
                "{} {} {} {ts_ns} {}",
                event["ph"], event["name"], event["pid"], event["dur"]
            )
        })
        .collect();
    texts.sort();
    texts
}

#[test]
fn windows_parts_and_the_order_of_time_show_what_drifting_clocks_show() {
    let mut simulation = eight(21);
    simulation.messages(&[0, 1, 2, 3, 4, 5, 6, 7], 100, 60_000);
    let dir = simulation.write();
    let all = Merged::of(&[], &[dir.path()]);
    let sorted = Merged::of(&["--sort"], &[dir.path()]);
    assert_eq!(texts(&sorted), texts(&all));
    let timed = sorted
        .trace
        .events
        .iter()
        .filter(|event| event["ph"] != "M");
    let times: Vec<i64> = timed.map(|event| ns(&event["ts"])).collect();
    assert!(times.is_sorted());
    // 100 s to 150 s, with the flows of requests left out, which a window cuts.
    let options = ["--no-link-requests", "--from=100s", "--to=150s"];
    let window = Merged::of(&options, &[dir.path()]);
    let plain = Merged::of(&options[..1], &[dir.path()]);
    let (from_ns, to_ns) = (100 * SECOND_NS, 150 * SECOND_NS);
    let base_ns = plain.report.0["base_ns"].as_i64().unwrap();
    let reaches = |event: &&serde_json::Value| {
        let dur_ns = event["dur"].as_f64().map_or(0, |_| ns(&event["dur"]));
        let at = || ns(&event["ts"]);
        event["ph"] != "M" && at() <= to_ns && at() + dur_ns >= from_ns
    };
    let expected = plain.trace.events.iter().filter(reaches).map(|event| {
        let ts_ns = ns(&event["ts"]) + base_ns;
        format!(
            "{} {} {} {ts_ns} {}",
            event["ph"], event["name"], event["pid"], event["dur"]
        )
    });
    let mut expected: Vec<String> = expected.collect();
    expected.sort();
    assert!(expected.len() > 100 && texts(&window) == expected);
    for threads in ["1", "3"] {
        let again = Merged::of(&["--threads", threads], &[dir.path()]);
        assert_eq!(again.bytes, all.bytes);
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("part.json");
    let ended = Ended::of(
        trace_merge()
            .args(["--split=100KB", "--report=json", "-o"])
            .arg(&whole)
            .arg(dir.path()),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut parts = 0;
    for part in ended.report().0["parts"].as_array().unwrap() {
        let bytes = std::fs::read(part["path"].as_str().unwrap()).unwrap();
        let trace = crate::trace::Trace::parse(&bytes);
        let uncut = trace
            .phase("X")
            .into_iter()
            .filter(|event| event["args"]["sa_cut"].is_null());
        for event in uncut {
            let whole = all.trace.named(event["name"].as_str().unwrap());
            assert_eq!((&event["ts"], &event["dur"]), (&whole["ts"], &whole["dur"]));
        }
        parts += 1;
    }
    assert!(parts > 2, "{parts}");
}

#[test]
fn flows_of_requests_follow_drifting_clocks() {
    let mut simulation = eight(22);
    simulation.messages(&[0, 1, 2, 3, 4, 5, 6, 7], 100, 300_000);
    let dir = simulation.write();
    let merged = Merged::of(&[], &[dir.path()]);
    assert_eq!(merged.report.0["links"]["requests"], 800);
    let spans: Vec<i64> = merged
        .trace
        .phase("X")
        .into_iter()
        .map(|event| ns(&event["ts"]))
        .collect();
    for link in merged.trace.links() {
        assert!(spans.contains(&ns(&link["ts"])), "{link}");
    }
    let mut starts = merged.trace.links().filter(|link| link["ph"] == "s");
    let ends = || merged.trace.links().filter(|link| link["ph"] == "f");
    assert!(starts.all(|start| {
        let end = ends().find(|end| end["id"] == start["id"]).unwrap();
        ns(&start["ts"]) <= ns(&end["ts"])
    }));
}

#[test]
fn no_arrow_between_hosts_is_missing_in_perfetto() {
    let test = "no_arrow_between_hosts_is_missing_in_perfetto";
    // A wall clock that is 9 ms behind lets what arrives after 0.2 ms arrive before it was sent.
    let mut hosts: Vec<Host> = (1..5)
        .map(|hours| Host::new(hours * HOUR_NS, 0, -9_000_000))
        .collect();
    (hosts[0].wall_ns, hosts[3].has_anchors) = (9_000_000, false);
    let mut simulation = Simulation::new(hosts, 60 * SECOND_NS, 6);
    simulation.messages(&[0, 1, 2, 3], 100, 200_000);
    let dir = simulation.write();
    let trace = dir.path().join("trace.json");
    let mut found = Vec::new();
    for by in ["anchors", "flows"] {
        let ended = Ended::of(
            trace_merge()
                .args(["--no-link-requests", "--clock", by])
                .arg(dir.path()),
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let queries = [perfetto::FLOWS, perfetto::SLICES, perfetto::ERRORS];
        let Some(rows) = perfetto::query(test, &trace, &queries) else {
            return;
        };
        assert_eq!(
            (perfetto::number(&rows[1]), rows[2].len()),
            (800, 0),
            "{rows:?}"
        );
        found.push(perfetto::number(&rows[0]));
    }
    assert!(found[0] < 300, "{found:?}");
    assert_eq!(found[1], 400);
}
