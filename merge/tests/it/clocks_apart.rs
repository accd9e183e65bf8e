//! Clocks of hosts in long runs, and where something is wrong with one of them, against the truth.

use crate::hosts::{Host, SECOND_NS, Simulation};
use crate::invocation::Merged;
use serde_json::Value;

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

/// Merges; all must be within what is said of their clocks.
fn merged(simulation: &mut Simulation) -> Merged {
    let merged = Merged::of(&["--no-link-requests"], &[simulation.write().path()]);
    simulation.assert_within(&merged);
    merged
}

fn assert_clock(clock: &Value, contradicting: u64, most_ns: u64) {
    assert_eq!(clock["contradicting_flows"], contradicting, "{clock}");
    let off_ns = clock["uncertainty_ns"].as_u64().unwrap();
    assert!(off_ns < most_ns, "{clock}");
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
    let merged = merged(&mut simulation);
    for host in 1..4 {
        let clock = simulation.clock(&merged, host);
        assert_eq!(clock["method"], "wall_clock_and_flows", "{clock}");
        // Two messages are 22 s apart, in which wall clocks that drift against the monotonic ones may go apart by ms.
        assert_clock(clock, 0, 40_000_000);
    }
    assert_eq!(simulation.clock(&merged, 4)["method"], "none");
}

#[test]
fn a_message_that_goes_back_by_less_than_clocks_may_be_off_is_left_out_alone() {
    for (many, has_anchors, back_ms) in [(2, true, 5), (2, false, 5), (3, true, 6)] {
        let length_ns = 400 * SECOND_NS;
        let mut hosts = hosts(many);
        hosts[1].has_anchors = has_anchors;
        let many = usize::try_from(many).unwrap();
        let mut simulation = Simulation::new(hosts, length_ns, 28 + 2 * many as u64);
        let each = if many == 2 { 2_000 } else { 1_000 };
        talk(&mut simulation, (many, each), length_ns);
        let pair = (many - 2, many - 1);
        simulation.message(pair, 200 * SECOND_NS, -1_000_000 * back_ms, 7);
        if !has_anchors {
            simulation.message(pair, 300 * SECOND_NS, -90 * SECOND_NS, 8);
        }
        let merged = merged(&mut simulation);
        for host in 1..many {
            let clock = simulation.clock(&merged, host);
            assert_clock(clock, 2 - u64::from(has_anchors), 1_000_000);
        }
    }
}

#[test]
fn if_the_wall_clock_of_the_reference_is_wrong_flows_alone_place_all() {
    let length_ns = 100 * SECOND_NS;
    let mut hosts = hosts(70);
    hosts[0].wall_ns = HOUR_NS;
    for (host, drift_ppm) in hosts.iter_mut().zip((-20..20).cycle()) {
        host.drift_ppm = drift_ppm;
    }
    let mut simulation = Simulation::new(hosts, length_ns, 33);
    talk(&mut simulation, (70, 20), length_ns);
    let merged = merged(&mut simulation);
    for host in 1..70 {
        assert_eq!(simulation.clock(&merged, host)["method"], "flows");
    }
}
