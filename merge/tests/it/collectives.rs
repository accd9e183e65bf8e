//! Ranks on hosts whose wall clocks differ, brought together by the collectives that they ended together, against the truth.

use crate::hosts::{Host, SECOND_NS, Simulation};
use crate::invocation::Merged;
use crate::pieces;
use crate::random::Rng;
use crate::trace::ns;
use serde_json::{Value, json};

const TRANSFER_NS: i64 = 100_000;
const BASE_NS: i64 = 1_751_410_836_000_000_000;

/// A trace as Kineto writes it on one host: a kernel for each collective, with when it began and ended in truth.
struct Rank {
    /// Error of the host's wall clock.
    wall_ns: i64,
    communicator: &'static str,
    /// True if the rank reports that it is rank 0.
    is_rank_0: bool,
    kernels: Vec<(i64, i64)>,
}

impl Rank {
    fn document(&self, number: usize) -> Value {
        let us = |ns: i64| (ns + self.wall_ns) as f64 / 1e3;
        let process = |name: &str, args: Value| json!({"ph": "M", "name": name, "pid": 0, "tid": 0, "ts": us(0), "args": args});
        let mut events = vec![
            process("process_name", json!({"name": "python3"})),
            process("process_labels", json!({"labels": "GPU 0"})),
        ];
        for (nth, (begin_ns, end_ns)) in self.kernels.iter().enumerate() {
            let args = json!({"Collective name": "allreduce", "Process Group Name": self.communicator, "Process Group Ranks": "[0, 1, 2]", "nth": nth, "rank": number});
            events.push(json!({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "pid": 0, "tid": 7, "ts": us(*begin_ns), "dur": (end_ns - begin_ns) as f64 / 1e3, "args": args}));
        }
        let ranks = self
            .is_rank_0
            .then(|| json!({"backend": "nccl", "rank": 0, "world_size": 2}));
        json!({"baseTimeNanoseconds": BASE_NS, "distributedInfo": ranks, "traceEvents": events})
    }
}

/// Ranks that all end each collective within 20 µs; the last one begins it 4 ms after the others.
fn ranks(walls_ns: &[i64], collectives: i64) -> Vec<Rank> {
    let mut rng = Rng::new(5);
    let mut below = |bound: usize| i64::try_from(rng.below(bound)).unwrap();
    let mut kernels = vec![Vec::new(); walls_ns.len()];
    for nth in 0..collectives {
        let last_ns = SECOND_NS / 10 + nth * 10_000_000 + below(3_000_000);
        for (rank, kernels) in kernels.iter_mut().enumerate() {
            let early_ns = match rank == walls_ns.len() - 1 {
                true => 0,
                false => 4_000_000 + below(10_000),
            };
            let end_ns = last_ns + TRANSFER_NS + below(20_000);
            kernels.push((last_ns - early_ns, end_ns));
        }
    }
    let ranks = walls_ns.iter().zip(kernels);
    ranks
        .map(|(wall_ns, kernels)| Rank {
            wall_ns: *wall_ns,
            communicator: "0",
            is_rank_0: false,
            kernels,
        })
        .collect()
}

fn merged(ranks: &[Rank], options: &[&str]) -> Merged {
    let ranks = ranks.iter().enumerate();
    let file = |(nth, rank): (usize, &Rank)| (format!("rank{nth}.json"), rank.document(nth));
    let (_folder, paths) = pieces::write(&ranks.map(file).collect::<Vec<_>>());
    pieces::merged(options, &paths)
}

/// Returns the greatest error of each rank's events, by the first one's clock.
fn errors(ranks: &[Rank], merged: &Merged) -> Vec<u64> {
    let mut errors = vec![0; ranks.len()];
    let base_ns = merged.report.0["base_ns"].as_i64().unwrap();
    for event in merged.trace.phase("X") {
        let number = |arg: &str| usize::try_from(event["args"][arg].as_u64().unwrap()).unwrap();
        let (rank, nth) = (number("rank"), number("nth"));
        let truth_ns = ranks[rank].kernels[nth].0 + ranks[0].wall_ns;
        let error = (ns(&event["ts"]) + base_ns).abs_diff(truth_ns);
        errors[rank] = errors[rank].max(error);
    }
    errors
}

fn clocks(merged: &Merged) -> &Vec<Value> {
    merged.report.0["clocks"].as_array().unwrap()
}

#[test]
fn collectives_bring_ranks_together_within_their_transfer() {
    let ranks = ranks(&[0, 5_000_000, -8_000_000], 20);
    let by_walls = merged(&ranks, &["--clock", "anchors"]);
    let merged = merged(&ranks, &[]);
    let errors = errors(&ranks, &merged);
    for (number, clock) in clocks(&merged).iter().enumerate().skip(1) {
        assert_eq!(clock["method"], "wall_clock_and_collectives", "{clock}");
        assert_eq!(clock["collectives"], 20, "{clock}");
        assert_eq!(clock["flows"], 0, "{clock}");
        let uncertainty_ns = clock["uncertainty_ns"].as_u64().unwrap();
        assert!(errors[number] <= uncertainty_ns, "{clock} {errors:?}");
        // The transfer, and the drift between two collectives.
        assert!(uncertainty_ns < 150_000, "{clock}");
        assert!(clocks(&by_walls)[number]["uncertainty_ns"].as_u64() > Some(20_000_000));
    }
    let text = &merged.ended.stderr;
    assert!(text.is_empty(), "{text}");
}

#[test]
fn what_is_not_the_same_collective_tells_nothing_of_clocks() {
    for what in [
        "two communicators",
        "one is missing",
        "two runs of one rank",
    ] {
        let mut both = ranks(&[0, 5_000_000], 30);
        match what {
            "two communicators" => both[1].communicator = "1",
            "one is missing" => _ = both[1].kernels.remove(0),
            _ => both.iter_mut().for_each(|rank| rank.is_rank_0 = true),
        }
        let merged = merged(&both, &[]);
        let clock = &clocks(&merged)[1];
        assert_eq!(clock["method"], "wall_clock", "{what}: {clock}");
        assert_eq!(clock["collectives"], 0, "{what}: {clock}");
    }
}

/// Collectives that hosts begin at different times, all but host 1 early, and end together.
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

/// Our own fragments: collectives on the tracks of NPUs, and a host that drifts and has no anchors. MSPTI has a clock of its own, which may be off by any time.
#[test]
fn collectives_place_a_host_that_has_no_wall_clock_unless_they_are_of_mspti() {
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
        let merged = Merged::of(&[], &[simulation.write().path()]);
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
