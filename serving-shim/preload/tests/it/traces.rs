//! Random programs get the same answers with and without the preload, error for error and task for task.

use c_programs::{Ended, Ground, SIMULATED, end};
use serde_json::Value;
use std::collections::BTreeSet;

/// Number of programs of each kind, the same in each run: seeds 0 to 7, and ten times as many with `SA_PROFILE_FULL=1`.
fn seeds() -> u64 {
    let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
    if is_full { 80 } else { 8 }
}

/// Executed tasks: the device's stream, the id, and kind and name.
type Tasks = BTreeSet<(u64, u64, String)>;

fn tasks(truth: &str) -> Tasks {
    let tasks = truth.lines().map(|line| {
        let task: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| task[key].as_u64().unwrap();
        let text = |key: &str| task[key].as_str().unwrap_or_default();
        let name = format!("{}-{}", text("kind"), text("name"));
        (number("stream"), number("seq"), name)
    });
    tasks.collect()
}

/// Returns a program's answers without the ids, which our events in the streams change. Asserts that each id belongs to the task that the thread submitted last.
fn answers(ended: &Ended, tasks: Option<&Tasks>) -> String {
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    let lines = ended.stdout.lines().map(|line| {
        let Some((before, rest)) = line.split_once('[') else {
            return line.to_owned() + "\n";
        };
        let (ids, after) = rest.split_once(']').unwrap();
        let [task, stream, id] = ids.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        if let Some(tasks) = tasks.filter(|_| task != "none" && task != "graph") {
            let (stream, id) = (stream.parse().unwrap(), id.parse().unwrap());
            let is_true = tasks.contains(&(stream, id, task.to_owned()));
            assert!(is_true, "{line}: it was another one");
        }
        format!("{before}{task}{after}\n")
    });
    lines.collect()
}

/// Runs one program with and without us, with these variables.
fn compare(ground: &Ground, seed: u64, threads: usize, rest: &[&str], variables: &[(&str, &str)]) {
    let run = |recorded: bool| {
        let program = ground.path("host");
        let truth = ground.path("truth.jsonl");
        let _ = std::fs::remove_file(&truth);
        let mut command = match recorded {
            true => ground.timed(program),
            false => ground.command(program),
        };
        let ended = end(command
            .args([&seed.to_string(), &threads.to_string()])
            .args(rest)
            .env("ASCEND_SIM_KERNEL_US", "1")
            .env("ASCEND_SIM_TRUTH", &truth)
            .envs(variables.iter().copied()));
        let of_a_stream = !variables.contains(&("ASCEND_SIM_SOC", "950"));
        let truth = std::fs::read_to_string(&truth).unwrap();
        answers(&ended, of_a_stream.then(|| tasks(&truth)).as_ref())
    };
    let (plain, recorded) = (run(false), run(true));
    let mut lines = plain.lines().zip(recorded.lines()).enumerate();
    if let Some((at, (plain, recorded))) = lines.find(|(_, (plain, recorded))| plain != recorded) {
        panic!(
            "seed {seed}, {variables:?}, line {at}:\n  without us: {plain}\n  with us:    {recorded}"
        );
    }
    assert_eq!(plain.len(), recorded.len());
}

/// Runs all programs with and without us, and returns the ground with the recording of the last one.
fn compare_all(_test: &str, threads: usize, rest: &[&str], variables: &[(&str, &str)]) -> Ground {
    let ground = Ground::with_simulator();
    ground.program("host", &["host.c"], &SIMULATED);
    for seed in 0..seeds() {
        let _ = std::fs::remove_dir_all(ground.run());
        compare(&ground, seed, threads, rest, variables);
    }
    ground
}

#[test]
fn a_host_is_told_the_same_with_and_without_us() {
    // Launches were timed, and launches that update a graph were recognised.
    let trace = compare_all("", 4, &["400"], &[]).trace();
    let timed = trace.recorded();
    let timed = timed.filter(|event| event["args"]["device_wall_us"].is_number());
    assert!(timed.count() > 30);
    assert!(!trace.with("not_timed", "graph_update").is_empty());
}

c_programs::cases! {
    compare_all;
    /// Launches that sampling leaves out may get the ids of our last record in a destroyed stream.
    the_same_where_launches_are_sampled:
        (4, &["400", "without-records"], &[("SA_PROFILE_DEVICE_SAMPLE", "2"), ("ASCEND_SIM_REUSE", "1")])
        (4, &["400", "without-records"], &[("SA_PROFILE_DEVICE_SAMPLE", "64"), ("ASCEND_SIM_REUSE", "1")]);
    the_same_where_ids_count_in_the_process: (4, &["400"], &[("ASCEND_SIM_SOC", "950")]);
    the_same_where_launches_cross_libraries: (3, &["300"], &[("ASCEND_SIM_OLD", "1")]);
    /// The program's own twelve events come first.
    the_same_where_our_events_are_refused:
        (4, &["300"], &[("ASCEND_SIM_FAULTS", "event_create:13+=207007")])
        (4, &["300"], &[("ASCEND_SIM_FAULTS", "event_create:14=207007,event_create:15=207007")]);
    the_same_where_our_records_are_refused:
        (4, &["300", "without-records"], &[("ASCEND_SIM_FAULTS", "event_record:/2=207007")])
        (4, &["300", "without-records"], &[("ASCEND_SIM_FAULTS", "event_record:/3=507002")]);
    the_same_where_launches_are_refused: (1, &["400"], &[("ASCEND_SIM_FAULTS", "launch:/3=507002")]);
}
