//! Kernels by MSPTI's records against what the simulated device really did: those in replays, and those that were launched one by one.

use crate::run::{Run, run_to};
use e2e::host_support::{Outcome, scratch};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Kernels of a graph, replays of each of two graphs, launches behind each replay.
const SIZE: [&str; 3] = ["5", "100", "2"];
const IN_REPLAYS: usize = 2 * 5 * 100;
const ALONE: usize = 2 * 100 * 2;
const ALL: usize = IN_REPLAYS + ALONE;

/// The simulator under its own name and MSPTI's.
struct Simulator(TempDir);

impl Simulator {
    fn new(names: &[&str]) -> Simulator {
        let folder = scratch();
        let test = std::env::current_exe().expect("the path of this test");
        let library = test.with_file_name("libascendcl.so");
        for name in names {
            symlink(&library, folder.path().join(name)).expect("a link");
        }
        Simulator(folder)
    }

    fn whole() -> Simulator {
        Simulator::new(&["libascendcl.so", "libmspti.so"])
    }

    fn run(&self, mode: &str, device: &str, variables: &[(&str, &str)]) -> Run {
        self.run_to(mode, device, variables, Outcome::quiet)
    }

    fn run_to(
        &self,
        mode: &str,
        device: &str,
        variables: &[(&str, &str)],
        end: fn(Outcome) -> Outcome,
    ) -> Run {
        let library = self.0.path().join("libascendcl.so");
        let library = library.to_str().expect("a path of text");
        let own = [
            ("SA_PROFILE_DEVICE", device),
            ("SA_PROFILE_SIM_LIBRARY", library),
        ];
        let all: Vec<(&str, &str)> = own.into_iter().chain(variables.iter().copied()).collect();
        run_to(&[&[mode], &SIZE[..]].concat(), &all, end)
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// A kernel on the device: its row, its name, when it began and how long it took in µs, and how far off that may be.
#[derive(Debug)]
struct Kernel {
    row: String,
    name: String,
    at_us: f64,
    us: f64,
    uncertainty_us: f64,
    is_in_a_replay: bool,
}

/// The slices by MSPTI's records, in the order of their rows.
fn by_records(run: &Run) -> Vec<Kernel> {
    let rows: BTreeMap<String, &str> = run
        .merged
        .events()
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .filter_map(|event| Some((row(event), event["args"]["name"].as_str()?)))
        .collect();
    let slices = run.slices().into_iter();
    let slices = slices.filter(|slice| slice["args"]["device_method"] == "mspti");
    let kernel = |slice: &Value| Kernel {
        row: rows[&row(slice)].to_owned(),
        name: slice["name"].as_str().unwrap_or_default().to_owned(),
        at_us: number(&slice["ts"]),
        us: number(&slice["dur"]),
        uncertainty_us: number(&slice["args"]["uncertainty_us"]),
        is_in_a_replay: slice["args"]["correlation"].is_number(),
    };
    sorted(slices.map(kernel).collect())
}

fn row(event: &Value) -> String {
    format!("{} {}", event["pid"], event["tid"])
}

fn sorted(mut kernels: Vec<Kernel>) -> Vec<Kernel> {
    kernels.sort_by(|one, other| {
        let by_row = one.row.cmp(&other.row);
        by_row.then(one.at_us.total_cmp(&other.at_us))
    });
    kernels
}

/// The kernels that really ran; those of graphs in the stream of this member of the truth.
fn in_truth(run: &Run, graph_stream: &str) -> Vec<Kernel> {
    let base = run.merged.base_ns() as f64;
    let kernels = run.truth.iter().filter(|task| task["kind"] == "kernel");
    let kernel = |task: &Value| {
        let stream = match task["graph"].is_null() {
            true => &task["stream"],
            false => &task[graph_stream],
        };
        Kernel {
            row: format!("Stream {stream}"),
            name: task["name"].as_str().unwrap_or_default().to_owned(),
            at_us: (number(&task["start_ns"]) - base) / 1e3,
            us: (number(&task["end_ns"]) - number(&task["start_ns"])) / 1e3,
            uncertainty_us: 0.0,
            is_in_a_replay: !task["graph"].is_null(),
        }
    };
    sorted(kernels.map(kernel).collect())
}

/// Holds each slice against the kernel that it stands for; the largest error and the largest stated uncertainty.
fn assert_same(slices: &[Kernel], truth: &[Kernel]) -> (f64, f64) {
    assert_eq!(slices.len(), truth.len());
    let (mut worst, mut stated) = (0f64, 0f64);
    for (slice, truth) in slices.iter().zip(truth) {
        assert_eq!((&slice.row, &slice.name), (&truth.row, &truth.name));
        let error = (slice.at_us - truth.at_us).abs();
        assert!(
            error <= slice.uncertainty_us + 0.05,
            "{error} µs off: {slice:?}, {truth:?}"
        );
        let off = (slice.us - truth.us).abs();
        let most = 0.1 + truth.us * 2e-4 + slice.uncertainty_us;
        assert!(
            off <= most,
            "{off} µs longer or shorter: {slice:?}, {truth:?}"
        );
        (worst, stated) = (worst.max(error), stated.max(slice.uncertainty_us));
    }
    (worst, stated)
}

/// Of the kernels that ran, the one next to each slice in its row; each is that of one slice.
fn next_to(slices: &[Kernel], truth: Vec<Kernel>) -> Vec<Kernel> {
    let away = |slice: &Kernel, kernel: &Kernel| (slice.at_us - kernel.at_us).abs();
    let next = |slice: &Kernel| {
        let row = truth.iter().enumerate();
        let row = row.filter(|(_, kernel)| kernel.row == slice.row);
        let next =
            row.min_by(|(_, one), (_, other)| away(slice, one).total_cmp(&away(slice, other)));
        next.expect("a kernel in the row").0
    };
    let found: BTreeSet<usize> = slices.iter().map(next).collect();
    let kernels = truth.into_iter().enumerate();
    let kernels = kernels.filter(|(index, _)| found.contains(index));
    kernels.map(|(_, kernel)| kernel).collect()
}

/// The slices of replays by launch: where they begin and end.
fn replays(run: &Run) -> BTreeMap<u64, (f64, f64)> {
    let slices = run.slices().into_iter();
    let replays = slices.filter(|slice| slice["cat"] == "graph");
    let at = |slice: &Value| {
        let (start, dur) = (number(&slice["ts"]), number(&slice["dur"]));
        (start, start + dur)
    };
    let id = |slice: &Value| slice["args"]["launch"].as_u64().expect("a launch");
    replays.map(|slice| (id(slice), at(slice))).collect()
}

/// Every kernel of a replay lies in the slice of its launch.
fn assert_inside(run: &Run) {
    let replays = replays(run);
    let slices = run.slices().into_iter();
    let kernels = slices.filter(|slice| slice["args"]["correlation"].is_number());
    for kernel in kernels {
        let launch = kernel["args"]["launch"].as_u64().expect("a launch");
        let (start, end) = replays[&launch];
        let at = number(&kernel["ts"]);
        // Times have three decimals.
        let is_inside = at >= start - 0.0015 && at + number(&kernel["dur"]) <= end + 0.0015;
        assert!(is_inside, "from {start} to {end}: {kernel}");
    }
}

fn counted(run: &Run, series: &str) -> u64 {
    run.counted_by("kernel records", series)
}

#[test]
fn kernels_stand_where_they_ran_inside_replays_and_alone() {
    let cases: [&[(&str, &str)]; 4] = [
        &[],
        &[("ASCEND_SIM_DRIFT_PPM", "-100")],
        &[
            ("ASCEND_SIM_DRIFT_PPM", "100"),
            ("ASCEND_SIM_CLOCK_OFFSET_S", "7200"),
        ],
        &[
            ("ASCEND_SIM_MSPTI_STREAM", "launch"),
            ("ASCEND_SIM_SOC", "950"),
        ],
    ];
    for variables in cases {
        let run = Simulator::whole().run("replayed", "sim,mspti", variables);
        let stream = match variables.contains(&("ASCEND_SIM_MSPTI_STREAM", "launch")) {
            true => "stream",
            false => "graph_stream",
        };
        let truth = in_truth(&run, stream);
        assert_eq!(truth.len(), ALL);
        let (worst, stated) = assert_same(&by_records(&run), &truth);
        println!("KERNELS {variables:?}: at most {worst:.2} µs off, {stated:.2} µs stated");
        assert_eq!(counted(&run, "placed"), ALL as u64);
        assert_eq!(counted(&run, "missing") + counted(&run, "impossible"), 0);
        assert_eq!(run.counted("timed"), (200 + ALONE) as u64);
        assert_eq!(run.phase("s"), 200 + ALONE, "a flow for each launch");
        assert_eq!(replays(&run).len(), 200);
        assert_inside(&run);
        assert_eq!(run.merged.named("mspti"), 1, "that it is used is told");
    }
}

/// Where the clock steps inside a replay, its kernels contradict each other.
#[test]
fn a_step_of_the_records_clock_costs_no_more_than_the_replay_that_it_falls_into() {
    let steps = [("ASCEND_SIM_MSPTI_ANCHOR_US", "60000")];
    let run = Simulator::whole().run("replayed", "sim,mspti", &steps);
    let (mut slices, mut truth) = (by_records(&run), in_truth(&run, "graph_stream"));
    let missing = counted(&run, "missing");
    assert_eq!(slices.len() as u64 + missing, ALL as u64);
    slices.retain(|kernel| kernel.is_in_a_replay);
    truth.retain(|kernel| kernel.is_in_a_replay);
    let (worst, stated) = assert_same(&slices, &next_to(&slices, truth));
    println!("STEPS: at most {worst:.2} µs off, {stated:.2} µs stated, {missing} missing");
    assert!(missing <= 100, "{missing}");
    assert_inside(&run);
}

#[test]
fn records_that_are_dropped_are_missed_and_counted() {
    let variables = [("ASCEND_SIM_FAULTS", "mspti_record:/7=1")];
    let run = Simulator::whole().run("replayed", "sim,mspti", &variables);
    let (slices, all) = (by_records(&run).len(), ALL);
    assert_eq!(slices as u64, counted(&run, "placed"));
    assert_eq!(counted(&run, "missing"), (all - slices) as u64);
    assert!(slices >= all * 5 / 7, "{slices}");
    assert_eq!(run.phase("s"), 200 + ALONE, "each launch has a slice");
    assert_inside(&run);
}

#[test]
fn a_profiler_that_has_subscribed_before_is_left_alone() {
    let mode = "replayed-beside-a-subscriber";
    let run = Simulator::whole().run_to(mode, "sim,mspti", &[], |outcome| {
        assert!(
            outcome
                .one_line()
                .contains("another profiler has subscribed")
        );
        outcome
    });
    let told = format!("told of {ALL} kernels");
    assert!(run.outcome.stdout.contains(&told), "{:?}", run.outcome);
    assert_eq!(by_records(&run).len(), 0);
    assert_eq!(run.counted("timed"), (200 + ALONE) as u64);
    assert_eq!(run.merged.named("mspti_unavailable"), 1);
}

#[test]
fn mspti_is_given_back_while_another_profiler_is_at_work() {
    let run = Simulator::whole().run("profiler-first", "sim,mspti", &[]);
    let slices = run.slices();
    let by = |method: &str| {
        let is_by = |slice: &&&Value| slice["args"]["device_method"] == method;
        let indices = slices.iter().filter(is_by);
        let index = |slice: &&Value| slice["args"]["index"].as_u64().expect("an index");
        indices.map(index).collect::<BTreeSet<u64>>()
    };
    assert_eq!(by("mspti"), (10..20).chain(30..40).collect());
    assert!(by("event_pair").is_empty(), "{:?}", by("event_pair"));
    assert_eq!((run.counted("paused"), run.merged.named("mspti")), (20, 2));
}

#[test]
fn beside_msprof_it_is_not_used() {
    let variables = [("PROFILER_SAMPLECONFIG", "{}")];
    let run = Simulator::whole().run_to("replayed", "sim,mspti", &variables, |outcome| {
        assert!(outcome.one_line().contains("msprof is at work"));
        outcome
    });
    assert_eq!((by_records(&run).len(), run.merged.named("mspti")), (0, 0));
}

#[test]
fn without_mspti_launches_have_their_pairs() {
    let refused = [("ASCEND_SIM_FAULTS", "mspti_subscribe:1+=6")];
    let cases = [
        (Simulator::new(&["libascendcl.so"]), &[][..], "libmspti.so"),
        (
            Simulator::whole(),
            &refused[..],
            "libmspti.so is not in LD_PRELOAD",
        ),
    ];
    for (simulator, variables, why) in cases {
        for device in ["sim,mspti", "sim"] {
            let run = simulator.run_to("replayed", device, variables, |outcome| outcome);
            let said = &run.outcome.stderr;
            match device {
                "sim,mspti" => assert!(
                    said.contains("device times come from event pairs alone") && said.contains(why),
                    "{said}"
                ),
                _ => assert_eq!(said, ""),
            }
            let told = usize::from(device == "sim,mspti");
            assert_eq!(run.merged.named("mspti_unavailable"), told, "{device}");
            assert_eq!(by_records(&run).len(), 0);
            assert_eq!(run.counted("timed"), (200 + ALONE) as u64);
        }
    }
}

#[test]
fn a_kill_loses_what_was_not_read_yet() {
    let mode = "replayed-and-killed";
    let run = Simulator::whole().run_to(mode, "sim,mspti", &[], Outcome::was_killed);
    let slices = by_records(&run).len();
    assert!((ALL..=ALL + 5).contains(&slices), "{slices}");
    assert_inside(&run);
}
