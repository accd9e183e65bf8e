//! Kernels by MSPTI's records against what the simulated device really did: those in replays, and those that were launched one by one.

use crate::run::{Run, host, run_to};
use e2e::host_support::{Merged, Outcome, scratch};
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
    /// When it was launched on the host, from and to.
    launched_us: (f64, f64),
}

impl Kernel {
    /// Whether a slice can stand for a kernel that ran: in its row, by its name, of its launch.
    fn can_be(&self, truth: &Kernel) -> bool {
        let (from, to) = self.launched_us;
        let is_launch = (from - 0.002..=to + 0.002).contains(&truth.launched_us.0);
        self.row == truth.row && self.name == truth.name && is_launch
    }
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
    let launches = launches(run);
    let slices = run.slices().into_iter();
    let slices = slices.filter(|slice| slice["args"]["device_method"] == "mspti");
    let kernel = |slice: &Value| Kernel {
        launched_us: launches[&slice["args"]["launch"].as_u64().expect("a launch")],
        row: stream(rows[&row(slice)]).to_owned(),
        name: slice["name"].as_str().unwrap_or_default().to_owned(),
        at_us: number(&slice["ts"]),
        us: number(&slice["dur"]),
        uncertainty_us: number(&slice["args"]["uncertainty_us"]),
        is_in_a_replay: is_in_a_replay(slice),
    };
    sorted(slices.map(kernel).collect())
}

/// The host's spans of launches by id: from when to when.
fn launches(run: &Run) -> BTreeMap<u64, (f64, f64)> {
    let events = run.merged.events().iter();
    let spans = events.filter(|one| one["ph"] == "X" && one["args"]["uncertainty_us"].is_null());
    let at = |span: &Value| {
        let (start, dur) = (number(&span["ts"]), number(&span["dur"]));
        Some((span["args"]["launch"].as_u64()?, (start, start + dur)))
    };
    spans.filter_map(at).collect()
}

/// What MSPTI alone tells of has waited in no queue.
fn is_in_a_replay(slice: &Value) -> bool {
    let args = &slice["args"];
    args["device_method"] == "mspti" && args["queue_us"].is_null()
}

/// The stream of a row: what overlaps by what is uncertain has a row of its own.
fn stream(row: &str) -> &str {
    row.split_once(" (overlapping")
        .map_or(row, |(stream, _)| stream)
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

/// The kernels that really ran, and the collectives of graphs; those of graphs in the stream of this member of the truth.
fn in_truth(run: &Run, graph_stream: &str) -> Vec<Kernel> {
    let base = run.merged.base_ns() as f64;
    let kernels = run.truth.iter().filter(|task| {
        task["kind"] == "kernel" || task["kind"] == "hccl" && !task["graph"].is_null()
    });
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
            launched_us: {
                let at = (number(&task["launch_ns"]) - base) / 1e3;
                (at, at)
            },
        }
    };
    sorted(kernels.map(kernel).collect())
}

/// Holds each slice against the kernel that it stands for; the largest error and the largest stated uncertainty.
fn assert_same(slices: &[Kernel], truth: &[Kernel]) -> (f64, f64) {
    assert_eq!(slices.len(), truth.len());
    let (mut worst, mut stated) = (0f64, 0f64);
    for (slice, truth) in slices.iter().zip(truth) {
        assert!(slice.can_be(truth), "{slice:?}, {truth:?}");
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

/// Of the kernels that ran, those that the slices stand for: in each row in the same order, and as near as that allows.
fn next_to(slices: &[Kernel], truth: Vec<Kernel>) -> Vec<Kernel> {
    let rows: BTreeSet<&str> = slices.iter().map(|one| one.row.as_str()).collect();
    let of = |kernels: &[Kernel], row: &str| -> Vec<usize> {
        let all = kernels.iter().enumerate();
        let of_row = all.filter(|(_, one)| one.row == row);
        of_row.map(|(index, _)| index).collect()
    };
    let is_alien = |slice: &&Kernel| !truth.iter().any(|one| slice.can_be(one));
    let aliens: Vec<&Kernel> = slices.iter().filter(is_alien).collect();
    assert!(aliens.is_empty(), "of no kernel: {aliens:?}");
    let mut found = BTreeSet::new();
    for row in rows {
        let (shown, ran) = (of(slices, row), of(&truth, row));
        assert!(shown.len() <= ran.len(), "{row}");
        // The least distance in all between so many slices and so many kernels.
        let mut least = vec![vec![0f64; ran.len() + 1]; shown.len() + 1];
        let away = |i: usize, j: usize| {
            let (slice, truth) = (&slices[shown[i]], &truth[ran[j]]);
            match slice.can_be(truth) {
                true => (slice.at_us - truth.at_us).abs(),
                false => f64::INFINITY,
            }
        };
        for i in 1..=shown.len() {
            least[i][i - 1] = f64::INFINITY;
            for j in i..=ran.len() {
                least[i][j] = least[i][j - 1].min(least[i - 1][j - 1] + away(i - 1, j - 1));
            }
        }
        let (mut i, mut j) = (shown.len(), ran.len());
        while i > 0 {
            j -= 1;
            if j + 1 == i || least[i][j + 1] < least[i][j] {
                found.insert(ran[j]);
                i -= 1;
            }
        }
    }
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
    let kernels = slices.filter(|slice| is_in_a_replay(slice));
    for kernel in kernels {
        let launch = kernel["args"]["launch"].as_u64().expect("a launch");
        let (start, end) = replays[&launch];
        let at = number(&kernel["ts"]);
        // Times have three decimals.
        let is_inside = at >= start - 0.0015 && at + number(&kernel["dur"]) <= end + 0.0015;
        assert!(is_inside, "from {start} to {end}: {kernel}");
    }
}

/// Each slice by a record stands for another kernel or collective that really ran, in the row, by the name, of the launch and at the time that it says.
fn assert_true(run: &Run, graph_stream: &str) {
    let slices = by_records(run);
    let in_replays = |mut all: Vec<Kernel>| {
        all.retain(|one| one.is_in_a_replay);
        all
    };
    let alone = |mut all: Vec<Kernel>| {
        all.retain(|one| !one.is_in_a_replay);
        all
    };
    for part in [in_replays as fn(Vec<Kernel>) -> Vec<Kernel>, alone] {
        let (slices, truth) = (part(by_records(run)), part(in_truth(run, graph_stream)));
        assert_same(&slices, &next_to(&slices, truth));
    }
    assert!(slices.len() <= in_truth(run, graph_stream).len());
    assert_inside(run);
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
    let at = |one: &Kernel| one.at_us;
    let first = truth.iter().map(at).fold(f64::INFINITY, f64::min);
    let last = truth.iter().map(at).fold(0.0, f64::max);
    slices.retain(|kernel| kernel.is_in_a_replay);
    truth.retain(|kernel| kernel.is_in_a_replay);
    let (worst, stated) = assert_same(&slices, &next_to(&slices, truth));
    let steps = 1.0 + (last - first) / 60_000.0;
    println!(
        "STEPS: at most {worst:.2} µs off, {stated:.2} µs stated, {missing} missing, {steps:.0} steps"
    );
    // In each stream a replay of 5 kernels and a launch at most, and as many where a step is not found at once.
    assert!(
        missing as f64 <= 100.0 + steps * 24.0,
        "{missing} by {steps} steps"
    );
    assert_inside(&run);
}

/// Where the clock steps by about the distance of two launches, each record falls between the events of a neighbour, which has another name.
#[test]
fn a_step_of_the_records_clock_gives_no_kernel_the_times_of_its_neighbour() {
    let simulator = Simulator::whole();
    let library = simulator.0.path().join("libascendcl.so");
    let variables = [
        ("SA_PROFILE_DEVICE", "sim,mspti"),
        ("SA_PROFILE_SIM_LIBRARY", library.to_str().expect("text")),
        ("ASCEND_SIM_KERNELS", "matmul=8,add=9,paged_attention=10"),
        ("ASCEND_SIM_MSPTI_ANCHOR_US", "700000"),
        ("ASCEND_SIM_MSPTI_ANCHOR_OFF_US", "6"),
    ];
    let run = run_to(&["in-turn", "50000"], &variables, Outcome::quiet);
    let slices = by_records(&run);
    let mut truth = in_truth(&run, "stream");
    truth.sort_by(|one, other| one.launched_us.0.total_cmp(&other.launched_us.0));
    let own = |slice: &Kernel| {
        let before = |one: &Kernel| one.launched_us.0 < slice.launched_us.0 - 0.002;
        let own = &truth[truth.partition_point(before)];
        assert!(slice.can_be(own), "{slice:?}, {own:?}");
        own.us
    };
    let is_wrong = |slice: &&Kernel| (slice.us - own(slice)).abs() > 0.5;
    let wrong: Vec<&Kernel> = slices.iter().filter(is_wrong).collect();
    println!(
        "NEIGHBOURS: {} of {} slices have the times of another, {} missing",
        wrong.len(),
        slices.len(),
        counted(&run, "missing")
    );
    assert!(wrong.is_empty(), "{:?}", wrong.first());
    assert!(slices.len() > 5_000, "{}", slices.len());
}

#[test]
fn records_that_are_dropped_are_missed_and_counted() {
    // A round has 14 records: every seventh would be the same one of a graph each time.
    let variables = [("ASCEND_SIM_FAULTS", "mspti_record:/11=1")];
    let run = Simulator::whole().run("replayed", "sim,mspti", &variables);
    let (slices, all) = (by_records(&run).len(), ALL);
    assert_eq!(slices as u64, counted(&run, "placed"));
    assert_eq!(counted(&run, "missing"), (all - slices) as u64);
    assert!(slices >= all * 5 / 7 && slices < all, "{slices}");
    assert_eq!(run.phase("s"), 200 + ALONE, "each launch has a slice");
    assert_true(&run, "graph_stream");
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
    assert!(slices > 0 && slices <= ALL + 5, "{slices}");
    assert_inside(&run);
}

/// What was launched in a run with collectives, and what became of it.
#[derive(Debug)]
struct Told {
    kernels: usize,
    collectives: usize,
    /// In all, with the kernels that were launched one by one.
    shown: usize,
    missing: u64,
}

/// Two graphs of 6 kernels and 3 collectives, 3 replays of each while nothing else runs, and then 40 of each at once. `busy` threads keep the processors from everybody else.
fn with_collectives(busy: &str, end: &str, variables: &[(&str, &str)]) -> (Run, Told) {
    let simulator = Simulator::whole();
    let library = simulator.0.path().join("libascendcl.so");
    let own = [
        ("SA_PROFILE_DEVICE", "sim,mspti"),
        ("SA_PROFILE_SIM_LIBRARY", library.to_str().expect("text")),
        // MSPTI's clock does not step, however long a busy machine takes.
        ("ASCEND_SIM_MSPTI_ANCHOR_US", "600000000"),
    ];
    let all: Vec<(&str, &str)> = own.into_iter().chain(variables.iter().copied()).collect();
    let arguments = ["replayed-with-collectives", busy, end, "6", "40", "2"];
    let run = run_to(&arguments, &all, Outcome::quiet);
    let by_records = run.slices().into_iter();
    let by_records = by_records.filter(|slice| slice["args"]["device_method"] == "mspti");
    let in_replays = by_records.clone().filter(|slice| is_in_a_replay(slice));
    let (collectives, kernels) =
        in_replays.partition::<Vec<&Value>, _>(|slice| slice["cat"] == "comm");
    let told = Told {
        kernels: kernels.len(),
        collectives: collectives.len(),
        shown: by_records.count(),
        missing: counted(&run, "missing"),
    };
    (run, told)
}

/// All counters as they were told last, by name.
fn counters(run: &Run) -> BTreeMap<&str, String> {
    let counters = run.merged.events().iter();
    let ours = counters.filter(|event| event["ph"] == "C");
    let of = |event: &'_ Value| {
        let name = event["name"].as_str()?;
        matches!(name, "launches" | "kernel records").then(|| event["args"].to_string())
    };
    ours.filter_map(|event| Some((event["name"].as_str()?, of(event)?)))
        .collect()
}

/// What a run with collectives launched must be in the trace or be counted.
fn assert_accounted(busy: &str, end: &str, variables: &[(&str, &str)]) -> Told {
    /// Of each graph: those that overlap, and those that run alone before.
    const REPLAYS: usize = 40 + 3;
    const KERNELS: usize = 2 * 6 * REPLAYS;
    const COLLECTIVES: usize = 2 * 3 * REPLAYS;
    const LAUNCHES: usize = 2 * 2 * 40;
    let (run, told) = with_collectives(busy, end, variables);
    let in_graphs = |kind: &str| {
        let tasks = run.truth.iter().filter(|task| task["kind"] == kind);
        tasks.filter(|task| !task["graph"].is_null()).count()
    };
    assert_eq!(
        (in_graphs("kernel"), in_graphs("hccl")),
        (KERNELS, COLLECTIVES)
    );
    let counters = counters(&run);
    println!("COLLECTIVES beside {busy}, {end} {variables:?}: {told:?}, {counters:?}");
    assert!(told.kernels <= KERNELS && told.collectives <= COLLECTIVES);
    let all = KERNELS + COLLECTIVES + LAUNCHES;
    let accounted = told.shown + usize::try_from(told.missing).unwrap_or(0);
    // Collectives are expected once a replay of the graph has had their records.
    let unexpected = COLLECTIVES - told.collectives;
    // A replay that is just being shown when the process ends may be both.
    let twice = if end == "gone" { 9 } else { 0 };
    assert!(
        (all - unexpected..=all + twice).contains(&accounted),
        "{accounted} of {all}: {told:?}, {counters:?}"
    );
    if end != "gone" {
        assert_eq!(told.shown as u64, counted(&run, "placed"));
    }
    let stream = match variables.contains(&("ASCEND_SIM_MSPTI_STREAM", "launch")) {
        true => "stream",
        false => "graph_stream",
    };
    assert_true(&run, stream);
    told
}

#[test]
fn collectives_in_replays_are_shown_or_counted_whatever_the_load() {
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("0", &[]),
        ("0", &[("ASCEND_SIM_MSPTI_STREAM", "launch")]),
        ("8", &[]),
        ("24", &[("ASCEND_SIM_KERNEL_US", "200")]),
        ("8", &[("ASCEND_SIM_MSPTI_READ_US", "150000")]),
        ("8", &[("ASCEND_SIM_FAULTS", "mspti_record:/7=1")]),
    ];
    for (busy, variables) in cases {
        let told = assert_accounted(busy, "flushed", variables);
        // The others overlap before it is known what their graphs have.
        let least = if busy == "0" { 2 * 3 * 20 } else { 1 };
        assert!(told.kernels > 0 && told.collectives >= least, "{told:?}");
    }
}

#[test]
fn where_collectives_have_no_records_replays_have_their_kernels() {
    let refused = [("ASCEND_SIM_FAULTS", "mspti_enable:2+=6")];
    let (run, told) = with_collectives("0", "flushed", &refused);
    assert!(told.kernels > 0 && told.collectives == 0, "{told:?}");
    let events = run.merged.events().iter();
    let told = events.filter(|event| event["name"] == "mspti");
    let told: Vec<&Value> = told.map(|event| &event["args"]["collectives"]).collect();
    assert_eq!(told, [false]);
}

#[test]
fn collectives_are_accounted_for_where_the_process_ends_at_once() {
    for busy in ["0", "24"] {
        assert_accounted(busy, "gone", &[]);
    }
}

#[test]
fn mspti_is_given_back_while_the_level_is_off_and_taken_again() {
    const COUNT: u64 = 20;
    let simulator = Simulator::whole();
    let library = simulator.0.path().join("libascendcl.so");
    let variables = [
        ("SA_PROFILE_DEVICE", "sim,mspti"),
        ("SA_PROFILE_SIM_LIBRARY", library.to_str().expect("text")),
    ];
    let count = COUNT.to_string();
    let run = run_to(
        &["replayed-and-switched", &count],
        &variables,
        Outcome::quiet,
    );
    let slices = run.slices();
    let of_index = |slice: &&Value| slice["args"]["index"].as_u64();
    let by_records = slices
        .iter()
        .filter(|slice| slice["args"]["device_method"] == "mspti");
    let alone: BTreeSet<u64> = by_records.clone().filter_map(of_index).collect();
    for part in [0..COUNT, 2 * COUNT..3 * COUNT] {
        let shown = part.clone().filter(|index| alone.contains(index));
        assert!(shown.count() > 0, "{part:?} of {alone:?}");
    }
    let off = COUNT..2 * COUNT;
    let all_alone: BTreeSet<u64> = slices.iter().filter_map(of_index).collect();
    assert!(all_alone.iter().all(|index| !off.contains(index)));
    let in_replays = by_records.filter(|slice| is_in_a_replay(slice)).count();
    let alone = alone.iter().filter(|index| **index < 3 * COUNT).count();
    let lacking = (3 * 2 * COUNT).checked_sub((in_replays + alone) as u64);
    let missing = counted(&run, "missing");
    println!("SWITCHED: {in_replays} kernels in replays, {alone} launches, {missing} missing");
    assert!(
        lacking.is_some_and(|lacking| lacking <= missing),
        "{lacking:?}"
    );
    assert_true(&run, "graph_stream");
    assert_eq!(run.merged.named("mspti"), 2, "it is told each time");
}

#[test]
fn records_that_find_no_room_are_counted() {
    const REPLAYS: u64 = 300;
    /// Most that are kept of a device whose launches are not recorded.
    const ROOM: u64 = 1 << 18;
    let simulator = Simulator::whole();
    let library = simulator.0.path().join("libascendcl.so");
    let variables = [
        ("SA_PROFILE_DEVICE", "sim,mspti"),
        ("SA_PROFILE_SIM_LIBRARY", library.to_str().expect("text")),
        ("ASCEND_SIM_KERNELS", "add=0"),
    ];
    let dir = scratch();
    let replays = REPLAYS.to_string();
    let arguments = ["replayed-beside-another-device", &replays];
    let recorded = host(&arguments, &variables).recorded_in(&dir.path().join("run"));
    let said = recorded.run().quiet().stdout;
    assert!(said.contains("launched 50 beside 300 replays"), "{said}");
    let merged = Merged::newest(&dir.path().join("run"));
    let last = |series: &str| {
        let counters = merged.events().iter();
        let counters =
            counters.filter(|event| event["ph"] == "C" && event["name"] == "kernel records");
        let values = counters.filter_map(|event| event["args"][series].as_u64());
        values.max().unwrap_or(0)
    };
    let (no_room, placed) = (last("no_room"), last("placed"));
    println!("NO ROOM: {no_room} of {} records", REPLAYS * 1000);
    assert!(
        (REPLAYS * 1000 - ROOM..=REPLAYS * 1000).contains(&no_room),
        "{no_room}"
    );
    assert_eq!(placed + last("missing"), 50);
    assert!(placed > 0);
}
