//! Compares MSPTI's records in the trace with what the simulated device really did: each record is on the row of its stream once, and launches are not affected.

use super::check_places;
use super::run::{Run, highest, host, run_to};
use e2e::host_support::{Host, Merged, Outcome, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Kernels of a graph, replays of each of two graphs, launches behind each replay.
const SIZE: &str = "5 100 2";
const IN_REPLAYS: usize = 2 * 5 * 100;
const ALONE: usize = 2 * 100 * 2;
const ALL: usize = IN_REPLAYS + ALONE;
/// Number of launches with an event pair: replays and single kernels.
const LAUNCHES: usize = 200 + ALONE;

/// The program whose work that is.
fn replayed() -> String {
    format!("replayed {SIZE}")
}

/// A folder with the simulator, under its own name and under MSPTI's.
fn simulator(names: &[&str]) -> TempDir {
    let folder = scratch();
    let test = std::env::current_exe().expect("the path of this test");
    let library = test.with_file_name("libascendcl.so");
    for name in names {
        symlink(&library, folder.path().join(name)).expect("a link");
    }
    folder
}

fn whole_simulator() -> TempDir {
    simulator(&["libascendcl.so", "libmspti.so"])
}

/// Prepares a program that uses it.
fn host_with(simulator: &TempDir, arguments: &str, device: &str, variables: &str) -> Host {
    let host = host(arguments, variables).variable("SA_PROFILE_DEVICE", device);
    let library = simulator.path().join("libascendcl.so");
    host.variable("SA_PROFILE_SIM_LIBRARY", library)
}

/// Runs a program with MSPTI, which must end as `end` says.
fn run_with(arguments: &str, variables: &str, end: fn(Outcome) -> Outcome) -> Run {
    let simulator = whole_simulator();
    run_to(
        host_with(&simulator, arguments, "sim,mspti", variables),
        end,
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The parts of a record that do not depend on its time: stream, name, correlation id, and true for a collective.
type Key = (u64, String, u64, bool);

/// The times of the records with each key, sorted by start.
type Records = BTreeMap<Key, Vec<Times>>;

/// Start and duration in µs.
type Times = (f64, f64);

fn sorted(records: impl Iterator<Item = (Key, Times)>) -> Records {
    let mut sorted = Records::new();
    for (key, times) in records {
        sorted.entry(key).or_default().push(times);
    }
    for times in sorted.values_mut() {
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    sorted
}

fn count(records: &Records) -> usize {
    records.values().map(Vec::len).sum()
}

/// Returns the names of rows.
fn rows(run: &Run) -> BTreeMap<String, &str> {
    let names = run.merged.of_name("thread_name");
    names
        .filter_map(|event| Some((row(event), event["args"]["name"].as_str()?)))
        .collect()
}

fn row(event: &Value) -> String {
    format!("{} {}", event["pid"], event["tid"])
}

/// Returns the slices of MSPTI's rows.
fn shown(run: &Run) -> Records {
    let rows = rows(run);
    let events = run.merged.events().iter();
    let slices = events.filter(|event| event["args"]["device_method"] == "mspti");
    sorted(slices.map(|slice| {
        let args = &slice["args"];
        let stream = args["stream"].as_u64().expect("a stream");
        let name = rows[&row(slice)];
        // Two of them may overlap if the clock was renewed.
        let own = name.split(" (overlapping").next();
        assert_eq!(own, Some(format!("Stream {stream} (MSPTI)").as_str()));
        assert!(args["launch"].is_null() && args["uncertainty_us"].is_null());
        let is_collective = args["comm"].is_string();
        let category = if is_collective { "comm" } else { "kernel" };
        assert_eq!(
            (&slice["ph"], &slice["cat"]),
            (&"X".into(), &category.into())
        );
        let key = (
            stream,
            slice["name"].as_str().expect("a name").to_owned(),
            args["correlation"].as_u64().expect("a number"),
            is_collective,
        );
        (key, (number(&slice["ts"]), number(&slice["dur"])))
    }))
}

/// Returns the kernels and collectives that really ran and that MSPTI has numbered.
fn in_truth(run: &Run) -> Records {
    let base = run.merged.base_ns() as f64;
    let numbered = run.truth.iter().filter(|task| task["correlation"].is_u64());
    sorted(numbered.map(|task| {
        let stream = match task["graph"].is_null() {
            true => &task["stream"],
            false => &task["graph_stream"],
        };
        let key = (
            stream.as_u64().expect("a stream"),
            task["name"].as_str().expect("a name").to_owned(),
            task["correlation"].as_u64().expect("a number"),
            task["kind"] == "hccl",
        );
        let (start, end) = (number(&task["start_ns"]), number(&task["end_ns"]));
        (key, ((start - base) / 1e3, (end - start) / 1e3))
    }))
}

/// Returns each key with its times in the trace and in the truth.
fn pairs<'a>(
    shown: &'a Records,
    truth: &'a Records,
) -> impl Iterator<Item = (&'a Key, &'a [Times], &'a [Times])> {
    shown.iter().map(|(key, times)| {
        let truth = truth
            .get(key)
            .unwrap_or_else(|| panic!("{key:?} never ran"));
        (key, times.as_slice(), truth.as_slice())
    })
}

/// Asserts that every record is on its row once, and counted. Returns the number of records.
fn assert_all(run: &Run) -> usize {
    let (shown, truth) = (shown(run), in_truth(run));
    for (key, shown, truth) in pairs(&shown, &truth) {
        assert_eq!(shown.len(), truth.len(), "{key:?}");
    }
    assert_eq!(count(&shown), count(&truth));
    assert_eq!(counted(run, "placed"), count(&shown) as u64);
    assert_eq!(counted(run, "no_room") + counted(run, "unreadable"), 0);
    count(&shown)
}

/// Asserts that no record is on a row twice, and that each one ran. Returns the number of records.
fn assert_some(run: &Run) -> usize {
    let (shown, truth) = (shown(run), in_truth(run));
    for (key, shown, truth) in pairs(&shown, &truth) {
        assert!(shown.len() <= truth.len(), "{key:?}");
    }
    count(&shown)
}

/// Asserts that each record has its true duration. Returns the largest error of a start in µs.
fn largest_error(run: &Run) -> f64 {
    let (shown, truth) = (shown(run), in_truth(run));
    let mut largest = 0f64;
    for (key, shown, truth) in pairs(&shown, &truth) {
        for (shown, truth) in shown.iter().zip(truth) {
            let off = (shown.1 - truth.1).abs();
            assert!(
                off <= 0.1 + truth.1 * 2e-4,
                "{off} µs longer or shorter: {key:?}"
            );
            largest = largest.max((shown.0 - truth.0).abs());
        }
    }
    largest
}

/// Asserts that each launch has a slice with the times of its pair.
fn assert_launches(run: &Run) {
    let slices = run.slices();
    let is_by_pair = |slice: &&Value| slice["args"]["device_method"] == "event_pair";
    assert!(slices.iter().all(is_by_pair));
    assert_eq!((slices.len(), run.phase("s")), (LAUNCHES, LAUNCHES));
    assert_eq!(run.counted("timed"), LAUNCHES as u64);
}

fn counted(run: &Run, series: &str) -> u64 {
    highest(&run.merged, "kernel records", series)
}

#[test]
fn each_record_is_on_the_row_of_its_stream_once() {
    for variables in [
        "ASCEND_SIM_DRIFT_PPM=100 ASCEND_SIM_CLOCK_OFFSET_S=7200",
        "ASCEND_SIM_SOC=950",
    ] {
        let run = run_with(&replayed(), variables, Outcome::quiet);
        assert_eq!(assert_all(&run), ALL);
        assert_launches(&run);
        let off = largest_error(&run);
        println!("RECORDS {variables}: at most {off:.2} µs off");
        // 15 µs by the setting, and what a busy machine adds to a reading of the simulated MSPTI.
        assert!(off < 20_000.0, "{off} µs off");
        assert_eq!(run.merged.named("mspti"), 1, "that it is used is told");
        let clocks: Vec<&Value> = run.merged.of_name("MSPTI clock").collect();
        let is_stated = |clock: &&Value| clock["args"]["uncertainty"] == "unbounded";
        assert!(clocks.iter().all(is_stated));
        let rows = rows(&run);
        let of_mspti = rows.values().filter(|name| name.ends_with(" (MSPTI)"));
        assert_eq!(clocks.len(), of_mspti.count(), "each row states its bound");
    }
}

#[test]
fn a_step_of_the_records_clock_harms_nothing_else() {
    let steps = "ASCEND_SIM_MSPTI_ANCHOR_US=60000 ASCEND_SIM_MSPTI_ANCHOR_OFF_US=30000";
    let run = run_with("paced 1000 500", steps, Outcome::quiet);
    assert_eq!(assert_all(&run), 1000);
    let (worst, stated) = check_places(&run);
    println!("STEPS: launches are at most {worst:.2} µs off, {stated:.2} µs stated");
    assert_eq!((run.slices().len(), run.counted("timed")), (1000, 1000));
    let (shown, truth) = (shown(&run), in_truth(&run));
    let off = |(key, shown): (&Key, &Vec<Times>)| (shown[0].0 - truth[key][0].0).abs();
    let far = shown.iter().map(off).filter(|off| *off > 20_000.0);
    assert!(far.count() > 500, "their clock was off by 30 ms");
}

#[test]
fn mspti_is_given_back_while_another_profiler_is_at_work() {
    let run = run_with("profiler-first", "", Outcome::quiet);
    assert_eq!(assert_all(&run), 20);
    let slices = run.slices();
    let index = |slice: &&Value| slice["args"]["index"].as_u64().expect("an index");
    let timed: Vec<u64> = slices.iter().map(index).collect();
    assert_eq!(timed, (10..20).chain(30..40).collect::<Vec<u64>>());
    assert_eq!((run.counted("paused"), run.merged.named("mspti")), (20, 2));
    assert!(run.merged.named("device_timing_resumed") > 0);
}

#[test]
fn beside_msprof_it_is_not_used() {
    let run = run_with(&replayed(), "PROFILER_SAMPLECONFIG={}", |outcome| {
        assert!(outcome.one_line().contains("msprof is at work"));
        outcome
    });
    assert_eq!((count(&shown(&run)), run.merged.named("mspti")), (0, 0));
    assert_launches(&run);
}

#[test]
fn without_mspti_launches_have_their_pairs() {
    let cases = [
        (simulator(&["libascendcl.so"]), "", "libmspti.so"),
        (
            whole_simulator(),
            "mspti_subscribe:1+=6",
            "libmspti.so is not in LD_PRELOAD",
        ),
        (
            whole_simulator(),
            "mspti_subscribe:1+=2",
            "another profiler has subscribed",
        ),
    ];
    for (simulator, fault, why) in cases {
        for device in ["sim,mspti", "sim"] {
            let variables = format!("ASCEND_SIM_FAULTS={fault}");
            let host = host_with(&simulator, &replayed(), device, &variables);
            let run = run_to(host, |outcome| outcome);
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
            assert_eq!(count(&shown(&run)), 0);
            assert_launches(&run);
        }
    }
}

#[test]
fn a_kill_loses_what_was_not_read_yet() {
    let arguments = format!("replayed-and-killed {SIZE}");
    let run = run_with(&arguments, "", Outcome::was_killed);
    let shown = count(&shown(&run));
    assert!((ALL..=ALL + 5).contains(&shown), "{shown}");
}

/// Runs two graphs of 6 kernels and 3 collectives, 40 replays of each, and 2 launches and a collective after each replay. `busy` threads compete for the
/// processors.
fn with_collectives(busy: &str, end: &str, variables: &str) -> Run {
    let arguments = format!("replayed-with-collectives {busy} {end} 6 40 2");
    run_with(&arguments, variables, Outcome::quiet)
}

#[test]
fn collectives_have_their_records_too_and_where_they_have_none_kernels_do() {
    const REPLAYS: usize = 2 * 40;
    for (fault, expected) in [("", REPLAYS * (3 + 1)), ("mspti_enable:2+=6", 0)] {
        let faults = format!("ASCEND_SIM_FAULTS={fault}");
        let run = with_collectives("0", "flushed", &faults);
        assert_eq!(assert_all(&run), REPLAYS * (6 + 2) + expected);
        let shown = shown(&run);
        let collectives = shown
            .iter()
            .filter(|((.., is_collective), _)| *is_collective);
        let collectives: usize = collectives.map(|(_, times)| times.len()).sum();
        assert_eq!(collectives, expected);
        let told = run.merged.of_name("mspti");
        let told: Vec<&Value> = told.map(|event| &event["args"]["collectives"]).collect();
        assert_eq!(told, [expected > 0]);
    }
}

/// The simulator ends the process with another code if MSPTI is called after it has taken itself down.
#[test]
fn mspti_is_given_back_where_the_process_ends_at_once() {
    for busy in ["0", "24"] {
        let run = with_collectives(busy, "gone", "");
        let stdout = &run.outcome.stdout;
        // The exit waits 150 ms for it at most, which may be too short for a busy machine.
        let given_back = stdout.ends_with("MSPTI is taken: false\n");
        assert!(given_back || busy != "0", "{stdout}");
        let shown = assert_some(&run);
        let lost = counted(&run, "no_room") + counted(&run, "unreadable");
        println!("GONE beside {busy} threads: {shown} records, {lost} lost");
        assert!(shown > 0);
        // A device's thread that is late may write more than was counted.
        let accounted = usize::try_from(counted(&run, "placed") + lost).expect("a count fits");
        assert!(accounted <= count(&in_truth(&run)), "{accounted}");
    }
}

#[test]
fn mspti_is_given_back_while_the_level_is_off_and_taken_again() {
    const COUNT: usize = 20;
    let arguments = format!("replayed-and-switched {COUNT}");
    let run = run_with(&arguments, "", Outcome::quiet);
    let shown = assert_some(&run);
    let slices = run.slices();
    let index = |slice: &&Value| slice["args"]["index"].as_u64();
    let waits = slices
        .iter()
        .filter_map(index)
        .filter(|at| *at >= 2_000_000);
    // A launch and a replay of two kernels each time, in two of three parts; and the launches that waited for MSPTI.
    let least = 2 * COUNT * (1 + 2);
    let most = least + waits.count();
    println!("SWITCHED: {shown} records, of {least} to {most}");
    assert!((least..=most).contains(&shown), "{shown}");
    assert_eq!(run.merged.named("mspti"), 2, "it is told each time");
}

#[test]
fn records_that_find_no_room_are_counted() {
    const REPLAYS: u64 = 300;
    /// Most that are kept of a device whose launches are not recorded.
    const ROOM: u64 = 1 << 18;
    let (simulator, dir) = (whole_simulator(), scratch());
    let arguments = format!("replayed-beside-another-device {REPLAYS}");
    let variables = "ASCEND_SIM_KERNELS=add=0";
    let host = host_with(&simulator, &arguments, "sim,mspti", variables);
    let said = host.recorded_in(dir.path()).run().quiet().stdout;
    assert!(said.contains("launched 50 beside 300 replays"), "{said}");
    let merged = Merged::newest(dir.path());
    let last = |series| highest(&merged, "kernel records", series);
    let (no_room, placed) = (last("no_room"), last("placed"));
    println!("NO ROOM: {no_room} of {} records", REPLAYS * 1000);
    assert!(
        (REPLAYS * 1000 - ROOM..=REPLAYS * 1000).contains(&no_room),
        "{no_room}"
    );
    assert_eq!(placed, 50);
}
