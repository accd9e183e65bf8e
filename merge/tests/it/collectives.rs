//! NPUs of hosts whose wall clocks differ, aligned by the collectives that they ended together,
//! compared with the truth.

use crate::clocks::{Host, SECOND_NS, Simulation};
use crate::invocation::Merged;

/// Adds collectives that hosts begin at different times and end together. All hosts except host 1
/// begin early.
fn all_reduces(simulation: &mut Simulation, hosts: usize, many: usize) {
    let mut last_ns = SECOND_NS;
    for nth in 0..many {
        let at_ns = last_ns + simulation.below(30_000_000);
        for host in 0..hosts {
            let early_ns = simulation.below(2_000_000) * i64::from(host != 1);
            let late_ns = simulation.below(15_000);
            let times = (at_ns - early_ns, at_ns + 90_000 + late_ns);
            simulation.collective(host, times, nth);
        }
        last_ns += 100_000_000;
    }
}

/// Our own fragments have collectives on the tracks of NPUs, and one host drifts and has no
/// anchors. MSPTI has a clock of its own, which may be off by any time.
#[test]
fn collectives_place_a_host_without_a_wall_clock_except_those_of_mspti() {
    let mut hosts = vec![
        Host::new(3_600 * SECOND_NS, 0, 1_000_000),
        Host::new(90 * SECOND_NS, 0, -4_000_000),
        Host::new(7_000 * SECOND_NS, 30, 0),
    ];
    hosts[2].has_anchors = false;
    for (stream, methods, collectives) in [
        (
            "Stream 7",
            ["wall_clock_and_collectives", "collectives"],
            500,
        ),
        ("Stream 7 (MSPTI)", ["wall_clock", "none"], 0),
    ] {
        let mut simulation = Simulation::new(hosts.clone(), 60 * SECOND_NS, 71);
        simulation.stream = stream;
        all_reduces(&mut simulation, 3, 500);
        let merged = Merged::new(&[], &[simulation.write().path()]);
        simulation.assert_within(&merged);
        for (host, method) in (1..).zip(methods) {
            let clock = simulation.clock(&merged, host);
            assert_eq!(clock["method"], method, "{clock}");
            assert_eq!(clock["collectives"], collectives, "{clock}");
            let off_ns = clock["uncertainty_ns"].as_u64();
            let is_near = off_ns.is_some_and(|off_ns| off_ns < 200_000);
            assert_eq!(is_near, collectives > 0, "{clock}");
        }
    }
}
