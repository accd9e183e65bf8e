//! Compares MSPTI's records in the trace with what the simulated device really did: each record is on its stream's track exactly once, and launches are not affected.

use super::check_slices;
use super::run::{Run, highest, host, number, run_to};
use e2e::host_support::{Host, Merged, Outcome, library, scratch, track};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Kernels in a graph, replays of each of the two graphs, launches after each replay.
const SIZE: &str = "5 100 2";
const IN_REPLAYS: usize = 2 * 5 * 100;
const ALONE: usize = 2 * 100 * 2;
const ALL: usize = IN_REPLAYS + ALONE;
/// Number of launches with an event pair: graph replays and single kernels.
const LAUNCHES: usize = 200 + ALONE;

/// Returns the command for the program that does this work.
fn replayed() -> String {
    format!("replayed {SIZE}")
}

/// Creates a folder with links to the simulator under these names.
fn simulator(names: &[&str]) -> TempDir {
    let folder = scratch();
    for name in names {
        symlink(library("libascendcl.so"), folder.path().join(name)).expect("a link");
    }
    folder
}

/// Creates a folder with links to the simulator under its own name and MSPTI's.
fn whole_simulator() -> TempDir {
    simulator(&["libascendcl.so", "libmspti.so"])
}

/// Prepares a program that uses this simulator.
fn host_with(simulator: &TempDir, arguments: &str, device: &str, variables: &str) -> Host {
    let host = host(arguments, variables).variable("SA_PROFILE_DEVICE", device);
    let library = simulator.path().join("libascendcl.so");
    host.variable("SA_PROFILE_SIM_LIBRARY", library)
}

/// Runs a program with MSPTI and checks its outcome with `end`.
fn run_with(arguments: &str, variables: &str, end: fn(Outcome) -> Outcome) -> Run {
    let simulator = whole_simulator();
    let host = host_with(&simulator, arguments, "sim,mspti", variables);
    run_to(host, end)
}

/// The parts of a record that do not depend on time: stream, name, correlation id, and true for a collective.
type Key = (u64, String, u64, bool);

/// Times of the records with each key, sorted by start.
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

/// Returns the slices on MSPTI's tracks.
fn shown_records(run: &Run) -> Records {
    let tracks = run.merged.track_names();
    let events = run.merged.events().iter();
    let slices = events.filter(|event| event["args"]["device_method"] == "mspti");
    sorted(slices.map(|slice| {
        let args = &slice["args"];
        let stream = args["stream"].as_u64().expect("a stream");
        // There may be a second track for overlapping slices if the clock estimate was renewed.
        let own = tracks[&track(slice)].split(" (overlapping").next();
        assert_eq!(own, Some(format!("Stream {stream} (MSPTI)").as_str()));
        assert!(args["launch"].is_null() && args["uncertainty_us"].is_null());
        let is_collective = args["comm"].is_string();
        let category = if is_collective { "comm" } else { "kernel" };
        assert_eq!([&slice["ph"], &slice["cat"]], ["X", category]);
        let times = (number(&slice["ts"]), number(&slice["dur"]));
        let key = key(stream, slice, &args["correlation"], is_collective);
        (key, times)
    }))
}

fn key(stream: u64, named: &Value, correlation: &Value, is_collective: bool) -> Key {
    let name = named["name"].as_str().expect("a name").to_owned();
    let correlation = correlation.as_u64().expect("a number");
    (stream, name, correlation, is_collective)
}

/// Returns the kernels and collectives that really ran and that have an MSPTI correlation id.
fn true_records(run: &Run) -> Records {
    let base = run.merged.base_ns() as f64;
    let numbered = run.truth.iter().filter(|task| task["correlation"].is_u64());
    sorted(numbered.map(|task| {
        let stream = match task["graph"].is_null() {
            true => &task["stream"],
            false => &task["graph_stream"],
        };
        let stream = stream.as_u64().expect("a stream");
        let (start, end) = (number(&task["start_ns"]), number(&task["end_ns"]));
        let times = ((start - base) / 1e3, (end - start) / 1e3);
        let is_collective = task["kind"] == "hccl";
        let key = key(stream, task, &task["correlation"], is_collective);
        (key, times)
    }))
}

/// Asserts that every record is on its track exactly once and counted. Returns the number of records.
fn assert_all(run: &Run) -> usize {
    let (shown, truth) = (assert_some(run), count(&true_records(run)));
    assert_eq!((shown, counted(run, "placed")), (truth, truth as u64));
    assert_eq!(counted(run, "no_room") + counted(run, "unreadable"), 0);
    shown
}

/// Asserts that no record is shown twice and that each one really ran. Returns the number of records.
fn assert_some(run: &Run) -> usize {
    let (shown, truth) = (shown_records(run), true_records(run));
    for (key, times) in &shown {
        assert!(times.len() <= truth[key].len(), "{key:?}");
    }
    count(&shown)
}

/// Asserts that each record has its true duration. Returns the largest error of a start time in µs.
fn largest_error(run: &Run) -> f64 {
    let truth = true_records(run);
    let mut largest = 0f64;
    for (key, shown) in shown_records(run) {
        for (shown, truth) in shown.iter().zip(&truth[&key]) {
            let off = (shown.1 - truth.1).abs();
            let is_right = off <= 0.1 + truth.1 * 2e-4;
            assert!(is_right, "{off} µs longer or shorter: {key:?}");
            largest = largest.max((shown.0 - truth.0).abs());
        }
    }
    largest
}

/// Asserts that each launch has a slice with the times of its event pair.
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
fn each_record_is_on_the_track_of_its_stream_once() {
    for variables in [
        "ASCEND_SIM_DRIFT_PPM=100 ASCEND_SIM_CLOCK_OFFSET_S=7200",
        "ASCEND_SIM_SOC=950",
    ] {
        let run = run_with(&replayed(), variables, Outcome::quiet);
        assert_eq!(assert_all(&run), ALL);
        assert_launches(&run);
        let off = largest_error(&run);
        println!("RECORDS {variables}: at most {off:.2} µs off");
        // The simulator's setting accounts for 15 µs. On a busy machine, reading the simulated MSPTI adds more.
        assert!(off < 20_000.0, "{off} µs off");
        assert_eq!(
            run.merged.count_named("mspti"),
            1,
            "one event reports its use"
        );
        let clocks: Vec<&Value> = run.merged.events_named("MSPTI clock").collect();
        let is_stated = |clock: &&Value| clock["args"]["uncertainty"] == "unbounded";
        assert!(clocks.iter().all(is_stated));
        let tracks = run.merged.track_names();
        let mspti_tracks = tracks.values().filter(|name| name.ends_with(" (MSPTI)"));
        assert_eq!(
            clocks.len(),
            mspti_tracks.count(),
            "each track states its uncertainty"
        );
    }
}

#[test]
fn a_step_of_the_mspti_clock_affects_nothing_else() {
    let steps = "ASCEND_SIM_MSPTI_ANCHOR_US=60000 ASCEND_SIM_MSPTI_ANCHOR_OFF_US=30000";
    let run = run_with("paced 1000 500", steps, Outcome::quiet);
    assert_eq!(assert_all(&run), 1000);
    let (worst, stated) = check_slices(&run);
    println!("STEPS: launches are at most {worst:.2} µs off, {stated:.2} µs stated");
    assert_eq!((run.slices().len(), run.counted("timed")), (1000, 1000));
    let (shown, truth) = (shown_records(&run), true_records(&run));
    let off = |(key, shown): (&Key, &Vec<Times>)| (shown[0].0 - truth[key][0].0).abs();
    let far = shown.iter().map(off).filter(|off| *off > 20_000.0);
    assert!(far.count() > 500, "their clock was off by 30 ms");
}

#[test]
fn mspti_is_released_while_another_profiler_is_active() {
    let run = run_with("profiler-first", "", Outcome::quiet);
    assert_eq!(assert_all(&run), 20);
    let timed: Vec<u64> = (10..20).chain(30..40).collect();
    assert_eq!(run.indices(), timed);
    assert_eq!(
        (run.counted("paused"), run.merged.count_named("mspti")),
        (20, 2)
    );
    assert!(run.merged.count_named("device_timing_resumed") > 0);
}

#[test]
fn mspti_is_not_used_together_with_msprof() {
    let run = run_with(&replayed(), "PROFILER_SAMPLECONFIG={}", |outcome| {
        assert!(outcome.one_line().contains("msprof is running"));
        outcome
    });
    assert_eq!(
        (count(&shown_records(&run)), run.merged.count_named("mspti")),
        (0, 0)
    );
    assert_launches(&run);
}

#[test]
fn launches_use_event_pairs_without_mspti() {
    let both: &[&str] = &["libascendcl.so", "libmspti.so"];
    for (names, code, why) in [
        (&both[..1], 6, "libmspti.so"),
        (both, 6, "libmspti.so is not in LD_PRELOAD"),
        (both, 2, "another profiler has subscribed"),
    ] {
        for (device, reports) in [("sim,mspti", 1), ("sim", 0)] {
            let variables = format!("ASCEND_SIM_FAULTS=mspti_subscribe:1+={code}");
            let simulator = simulator(names);
            let host = host_with(&simulator, &replayed(), device, &variables);
            let run = run_to(host, |outcome| outcome);
            let stderr = &run.outcome.stderr;
            let is_reported = stderr.contains("device times only come from event pairs");
            assert_eq!(
                (is_reported && stderr.contains(why)),
                reports == 1,
                "{stderr}"
            );
            assert_eq!(stderr.lines().count(), reports, "{stderr}");
            assert_eq!(
                run.merged.count_named("mspti_unavailable"),
                reports,
                "{device}"
            );
            assert_eq!(count(&shown_records(&run)), 0);
            assert_launches(&run);
        }
    }
}

/// Runs two graphs of 6 kernels and 3 collectives, with 40 replays of each, and 2 launches and a collective after each replay. `busy` threads compete for
/// the processors.
fn with_collectives(busy: &str, end: &str, variables: &str) -> Run {
    let arguments = format!("replayed-{end} {busy} 6 40 2");
    run_with(&arguments, variables, Outcome::quiet)
}

#[test]
fn collectives_have_records_and_without_them_kernels_still_do() {
    const REPLAYS: usize = 2 * 40;
    for (fault, expected) in [("", REPLAYS * (3 + 1)), ("mspti_enable:2+=6", 0)] {
        let faults = format!("ASCEND_SIM_FAULTS={fault}");
        let run = with_collectives("0", "with-collectives", &faults);
        assert_eq!(assert_all(&run), REPLAYS * (6 + 2) + expected);
        let mut collectives = shown_records(&run);
        collectives.retain(|(.., is_collective), _| *is_collective);
        assert_eq!(count(&collectives), expected);
        let acquired = run.merged.events_named("mspti");
        let collectives_used: Vec<&Value> = acquired
            .map(|event| &event["args"]["collectives"])
            .collect();
        assert_eq!(collectives_used, [expected > 0]);
    }
}

/// The simulator ends the process with another exit code if MSPTI is called after its own shutdown.
#[test]
fn mspti_is_released_when_the_process_exits_immediately() {
    for busy in ["0", "24"] {
        let run = with_collectives(busy, "and-gone", "");
        let stdout = &run.outcome.stdout;
        // The exit waits at most 150 ms for MSPTI, which may be too short on a busy machine.
        let given_back = stdout.ends_with("MSPTI is taken: false\n");
        assert!(given_back || busy != "0", "{stdout}");
        let shown = assert_some(&run);
        let lost = counted(&run, "no_room") + counted(&run, "unreadable");
        println!("EXIT with {busy} busy threads: {shown} records, {lost} lost");
        assert!(shown > 0);
        // A device thread that is late may write more than was counted.
        let accounted = usize::try_from(counted(&run, "placed") + lost).expect("a count fits");
        assert!(accounted <= count(&true_records(&run)), "{accounted}");
    }
}

#[test]
fn mspti_is_released_while_the_level_is_off_and_acquired_again() {
    const COUNT: usize = 20;
    let arguments = format!("replayed-and-switched {COUNT}");
    let run = run_with(&arguments, "", Outcome::quiet);
    let shown = assert_some(&run);
    let indices = run.indices().into_iter();
    let waits = indices.filter(|at| *at >= 2_000_000);
    // Expects a launch and a replay of two kernels each time, in two of the three parts, and up to all launches made while waiting for MSPTI.
    let least = 2 * COUNT * (1 + 2);
    let most = least + waits.count();
    println!("SWITCHED: {shown} records, of {least} to {most}");
    assert!((least..=most).contains(&shown), "{shown}");
    assert_eq!(
        run.merged.count_named("mspti"),
        2,
        "each acquisition is reported"
    );
}

#[test]
fn records_without_room_are_counted() {
    const REPLAYS: u64 = 300;
    /// Maximum number of records kept for a device whose launches are not recorded.
    const ROOM: u64 = 1 << 18;
    let (simulator, dir) = (whole_simulator(), scratch());
    let arguments = format!("replayed-beside-another-device {REPLAYS}");
    let variables = "ASCEND_SIM_KERNELS=add=0";
    let host = host_with(&simulator, &arguments, "sim,mspti", variables);
    let _outcome = host.recorded_in(dir.path()).run().quiet();
    let merged = Merged::newest(dir.path());
    let last = |series| highest(&merged, "kernel records", series);
    let (no_room, placed) = (last("no_room"), last("placed"));
    println!("NO ROOM: {no_room} of {} records", REPLAYS * 1000);
    let most = REPLAYS * 1000;
    assert!((most - ROOM..=most).contains(&no_room), "{no_room}");
    assert_eq!(placed, 50);
}
