//! Clocks of hosts in long runs, and where something is wrong with one of them, against the truth.

use crate::hosts::{Host, SECOND_NS, Simulation};
use crate::invocation::Merged;

const HOUR_NS: i64 = 3_600 * SECOND_NS;

fn hosts(many: i64) -> Vec<Host> {
    (0..many)
        .map(|number| Host::new((1 + number) * HOUR_NS, 7 * number - 20, 1_000_000))
        .collect()
}

/// Messages both ways between neighbours, evenly over all the time.
fn talk(simulation: &mut Simulation, (hosts, each): (usize, i64), length_ns: i64) {
    let mut id = 1_000;
    for number in 0..each {
        for host in 1..hosts {
            for pair in [(0, host), (host, 0)] {
                id += 1;
                let at_ns = SECOND_NS + (length_ns - 2 * SECOND_NS) / each * number;
                let sent_ns = at_ns + i64::try_from(id).unwrap() * 7_000_000 % SECOND_NS;
                simulation.message(pair, sent_ns, 80_000 + 1_000 * (number % 7), id);
            }
        }
    }
}

fn uncertainty_ns(simulation: &Simulation, merged: &Merged, host: usize) -> u64 {
    let clock = simulation.clock(merged, host);
    clock["uncertainty_ns"].as_u64().unwrap()
}

#[test]
fn a_host_of_which_nothing_is_known_takes_nothing_from_a_long_run() {
    let length_ns = 12 * HOUR_NS;
    let mut hosts = hosts(4);
    // Nothing is known of it, and it was booted months ago.
    let mut stray = Host::new(2_400 * HOUR_NS, 0, 0);
    stray.has_anchors = false;
    hosts.push(stray);
    let mut simulation = Simulation::new(hosts, length_ns, 31);
    talk(&mut simulation, (4, 2_000), length_ns);
    simulation.span(4, (SECOND_NS, 2 * SECOND_NS), "stray", "");
    let merged = Merged::of(&["--no-link-requests"], &[simulation.write().path()]);
    simulation.assert_within(&merged);
    for host in 1..4 {
        let clock = simulation.clock(&merged, host);
        assert_eq!(clock["method"], "wall_clock_and_flows", "{clock}");
        // Two messages are 22 s apart, in which wall clocks that drift against the monotonic ones may go apart by ms.
        let off_ns = uncertainty_ns(&simulation, &merged, host);
        assert!(off_ns < 40_000_000, "{clock}");
    }
    assert_eq!(simulation.clock(&merged, 4)["method"], "none");
}

#[test]
fn a_message_that_goes_back_by_less_than_clocks_may_be_off_is_left_out_alone() {
    for has_anchors in [true, false] {
        let length_ns = 400 * SECOND_NS;
        let mut hosts = hosts(2);
        hosts[1].has_anchors = has_anchors;
        let mut simulation = Simulation::new(hosts, length_ns, 32);
        talk(&mut simulation, (2, 2_000), length_ns);
        simulation.message((0, 1), 200 * SECOND_NS, -5_000_000, 7);
        if !has_anchors {
            simulation.message((0, 1), 300 * SECOND_NS, -90 * SECOND_NS, 8);
        }
        let merged = Merged::of(&["--no-link-requests"], &[simulation.write().path()]);
        simulation.assert_within(&merged);
        let clock = simulation.clock(&merged, 1);
        assert_eq!(clock["contradicting_flows"], 2 - u64::from(has_anchors));
        assert!(
            uncertainty_ns(&simulation, &merged, 1) < 1_000_000,
            "{clock}"
        );
    }
}

#[test]
fn if_the_wall_clock_of_the_reference_is_wrong_flows_alone_place_all() {
    let length_ns = 100 * SECOND_NS;
    let mut hosts = hosts(70);
    hosts[0].wall_ns = HOUR_NS;
    for (number, host) in hosts.iter_mut().enumerate() {
        host.drift_ppm = i64::try_from(number % 40).unwrap() - 20;
    }
    let mut simulation = Simulation::new(hosts, length_ns, 33);
    talk(&mut simulation, (70, 20), length_ns);
    let merged = Merged::of(&["--no-link-requests"], &[simulation.write().path()]);
    simulation.assert_within(&merged);
    for host in 1..70 {
        assert_eq!(simulation.clock(&merged, host)["method"], "flows");
    }
}

#[test]
fn one_message_that_three_hosts_contradict_takes_nothing_from_the_others() {
    let length_ns = 400 * SECOND_NS;
    let mut simulation = Simulation::new(hosts(3), length_ns, 34);
    talk(&mut simulation, (3, 1_000), length_ns);
    simulation.message((1, 2), 200 * SECOND_NS, -6_000_000, 7);
    let merged = Merged::of(&["--no-link-requests"], &[simulation.write().path()]);
    simulation.assert_within(&merged);
    for host in [1, 2] {
        let clock = simulation.clock(&merged, host);
        assert_eq!(clock["contradicting_flows"], 1, "{clock}");
        assert!(
            uncertainty_ns(&simulation, &merged, host) < 1_000_000,
            "{clock}"
        );
    }
}
