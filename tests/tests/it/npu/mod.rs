//! Launch timing against what the simulated NPU really did, which it writes down beside.

mod mspti;
mod run;

use e2e::chance::rounds;
use e2e::host_support::Outcome;
use run::{Run, bare, host, run, run_to};
use serde_json::Value;
use std::collections::BTreeMap;

/// The true time of the event before each kernel, by stream in the order of the stream.
fn true_starts(truth: &[Value]) -> BTreeMap<i64, Vec<(u64, u64)>> {
    let mut tasks: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for task in truth {
        let stream = task["stream"].as_i64().expect("a stream");
        tasks.entry(stream).or_default().push(task);
    }
    let time = |task: &Value| task["end_ns"].as_u64().expect("a time");
    let starts = |mut tasks: Vec<&Value>| {
        tasks.sort_by_key(|task| (task["start_ns"].as_u64(), task["seq"].as_u64()));
        let of_three = tasks.windows(3).filter(|three| {
            let kinds = [0, 1, 2].map(|at| three[at]["kind"].as_str().unwrap_or_default());
            kinds == ["event_record", "kernel", "event_record"]
        });
        of_three
            .map(|three| (time(three[0]), time(three[2])))
            .collect::<Vec<_>>()
    };
    tasks
        .into_iter()
        .map(|(stream, tasks)| (stream, starts(tasks)))
        // The clock may be read through a stream of its own.
        .filter(|(_, starts)| !starts.is_empty())
        .collect()
}

/// Checks each slice of a paced run against the truth; returns the largest error and the largest stated uncertainty in µs.
fn check_places(run: &Run) -> (f64, f64) {
    let truth: Vec<_> = true_starts(&run.truth).into_values().collect();
    let base = run.merged.base_ns() as f64;
    let number = |value: &Value| value.as_f64().expect("a number");
    let (mut worst, mut stated) = (0f64, 0f64);
    for slice in run.slices() {
        let index = slice["args"]["index"].as_u64().expect("an index");
        let index = usize::try_from(index).expect("a count fits");
        // The program launches into its two streams in turn.
        let (start, end) = truth[index % 2][index / 2];
        let error = (number(&slice["ts"]) - (start as f64 - base) / 1e3).abs();
        let uncertainty = number(&slice["args"]["uncertainty_us"]);
        assert!(error <= uncertainty + 0.05, "{error} µs off: {slice}");
        let duration = (end - start) as f64 / 1e3;
        let off = (number(&slice["dur"]) - duration).abs();
        // A tick of 20 ns at either end, and the drift of the device's clock.
        assert!(
            off <= 0.1 + duration * 2e-4,
            "{duration} µs in truth: {slice}"
        );
        (worst, stated) = (worst.max(error), stated.max(uncertainty));
    }
    (worst, stated)
}

/// Runs the paced program and holds its slices against the truth.
fn placed(count: u64, pause_us: u64, variables: &str) -> Run {
    let run = run(&format!("paced {count} {pause_us}"), variables);
    let (worst, stated) = check_places(&run);
    println!("PLACED {count} {variables}: at most {worst:.2} µs off, {stated:.2} µs stated");
    assert_eq!(run.phase("s"), run.slices().len());
    run
}

#[test]
fn every_launch_has_a_span_a_slice_and_a_flow_between_them() {
    let count = rounds(3000, 500_000);
    let run = run(&format!("launches {count} 3"), "ASCEND_SIM_KERNEL_US=5");
    let said = format!("launched {count}, 0 failed");
    assert!(run.outcome.stdout.starts_with(&said));
    let slices = run.slices();
    assert_eq!((slices.len(), run.host_spans().len()), (count, count));
    assert_eq!((run.phase("s"), run.phase("f")), (count, count));
    assert_eq!(run.counted("timed"), count as u64);
    for slice in slices {
        let args = &slice["args"];
        assert_eq!(
            (&args["device_method"], &args["grid"]),
            (&"event_pair".into(), &8.into())
        );
        for key in ["host_wall_us", "device_wall_us", "queue_us"] {
            assert!(
                args[key].as_f64().is_some_and(|us| us >= 0.0),
                "{key} {slice}"
            );
        }
        assert!(
            args["host_limited"].is_boolean() && args["launch"].is_number(),
            "{slice}"
        );
    }
}

#[test]
fn slices_stand_where_the_device_really_was() {
    let ten_minutes = rounds(1000, 300_000) as u64;
    let fast = "ASCEND_SIM_DRIFT_PPM=100";
    let slow = "ASCEND_SIM_DRIFT_PPM=-100";
    for (count, pause_us, variables) in [
        (1000, 500, &format!("{fast} ASCEND_SIM_CLOCK_OFFSET_S=7200")),
        (1000, 500, &format!("{slow} ASCEND_SIM_CLOCK_OFFSET_S=-30")),
        (1000, 500, &format!("{fast} ASCEND_SIM_HAL=absent")),
        (1000, 500, &"ASCEND_SIM_SOC=950".to_owned()),
        (
            ten_minutes,
            1900,
            &format!("{slow} ASCEND_SIM_CLOCK_OFFSET_S=86400"),
        ),
        (20, 30_000, &format!("{fast} ASCEND_SIM_KERNEL_US=60000")),
    ] {
        let run = placed(count, pause_us, variables);
        assert_eq!(run.counted("timed"), count, "{variables}");
    }
}

#[test]
fn a_clock_that_is_set_misplaces_nothing() {
    for by in ["by_us=-40", "by_us=2000000"] {
        let step = format!("ASCEND_SIM_CLOCK_STEP=after_s=0.5,{by}");
        let run = placed(2000, 500, &step);
        let rejected = [
            "rejected_clock_set",
            "rejected_impossible",
            "rejected_reversed",
            "rejected_stale",
        ];
        let rejected: u64 = rejected.map(|series| run.counted(series)).into_iter().sum();
        assert_eq!(run.counted("timed") + rejected, 2000);
        assert!(rejected < 100, "{rejected}");
        assert!(run.merged.named("device_clock_set") >= 1);
    }
}

/// Checks that no slice lies further off than it says, by the true times of its kernel: the pair holds it whole.
fn check_held(run: &Run) {
    let kernels: Vec<(f64, f64)> = run
        .truth
        .iter()
        .filter(|task| task["kind"] == "kernel")
        .map(|task| {
            let us = |key: &str| {
                (task[key].as_f64().expect("a time") - run.merged.base_ns() as f64) / 1e3
            };
            (us("start_ns"), us("end_ns"))
        })
        .collect();
    for slice in run.slices() {
        let number = |value: &Value| value.as_f64().expect("a number");
        let (start, dur) = (number(&slice["ts"]), number(&slice["dur"]));
        let slack = number(&slice["args"]["uncertainty_us"]) + 1.0;
        let holds = |(from, to): &&(f64, f64)| start <= from + slack && *to <= start + dur + slack;
        assert!(
            kernels.iter().find(holds).is_some(),
            "no kernel ran within {slice}"
        );
    }
}

/// Slices that overlap another one of their row, which a viewer could not show.
fn overlaps(run: &Run) -> usize {
    let mut rows: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    // µs with three decimals, so that whole ns compare as whole numbers.
    let ns = |value: &Value| (value.as_f64().expect("a number") * 1e3).round();
    for slice in run.slices() {
        let row = (
            slice["pid"].as_u64().expect("a pid"),
            slice["tid"].as_u64().expect("a tid"),
        );
        let start = ns(&slice["ts"]);
        rows.entry(row)
            .or_default()
            .push((start, start + ns(&slice["dur"])));
    }
    let mut overlaps = 0;
    for slices in rows.values_mut() {
        slices.sort_by(|one, other| one.0.total_cmp(&other.0));
        overlaps += slices.windows(2).filter(|two| two[1].0 < two[0].1).count();
    }
    overlaps
}

#[test]
fn launches_timed_inside_others_or_from_two_threads_have_rows_of_their_own() {
    for (arguments, slices) in [("nested 200", 600), ("shared 1000", 2000)] {
        let run = run(arguments, "");
        assert_eq!(run.slices().len(), slices, "{arguments}");
        check_held(&run);
        assert_eq!(overlaps(&run), 0, "{arguments}");
    }
}

#[test]
fn two_devices_keep_their_clocks_apart_also_beside_a_capture() {
    let clocks = "ASCEND_SIM_CLOCK_OFFSET_S=0=100,1=7000 ASCEND_SIM_DRIFT_PPM=0=100,1=-100";
    let run = run("two-devices 400", clocks);
    check_held(&run);
    let rows: std::collections::BTreeSet<u64> = run
        .slices()
        .iter()
        .filter_map(|slice| slice["pid"].as_u64())
        .collect();
    assert_eq!(rows.len(), 2, "a process of rows for each device");
    let (timed, captured) = (run.counted("timed"), run.counted("captured"));
    assert_eq!(timed + captured, 801);
    assert!(timed > 600, "{timed}");
    assert_eq!(run.counted("rejected_impossible"), 0);
}

#[test]
fn a_program_that_launches_more_than_there_are_pairs_goes_on_as_if_nothing_were() {
    let variables = "ASCEND_SIM_KERNEL_US=20 ASCEND_SIM_DEPTH=100000";
    let run = run("added 9000", variables);
    assert_eq!(run.outcome.stdout, bare("added 9000", variables));
    assert!(run.outcome.stdout.contains("added 9000 of 9000, 0 failed"));
    let (timed, left) = (run.counted("timed"), run.counted("no_pair"));
    assert_eq!(timed + left, 9000);
    assert!(timed > 0 && left > 0, "{timed} timed, {left} left out");
    assert_eq!(
        run.host_spans().len(),
        9000,
        "each launch is shown on the host"
    );
}

#[test]
fn failing_calls_and_a_lost_device_change_nothing_for_the_program() {
    let faults = [
        "launch:/7=107000",
        "event_create:3+=207007",
        "event_record:/5=207005",
        "event_query:/3=107006",
        "event_timestamp:/4=107006",
        "device_lost:40=507899",
        "kernel:20=507015",
    ];
    for fault in faults {
        let variables = format!("ASCEND_SIM_FAULTS={fault}");
        let run = run("codes 60", &variables);
        if !fault.starts_with("device_lost") && !fault.starts_with("event") {
            assert_eq!(run.outcome.stdout, bare("codes 60", &variables), "{fault}");
        }
        assert_eq!(run.host_spans().len(), 60, "{fault}");
        assert_eq!(run.phase("s"), run.slices().len(), "{fault}");
    }
}

#[test]
fn a_kill_keeps_every_launch_that_had_ended() {
    let host = host("killed 500", "ASCEND_SIM_KERNEL_US=20");
    let run = run_to(host, Outcome::was_killed);
    let ended = run.slices().len();
    assert!((500..=505).contains(&ended), "{ended}");
    assert_eq!(run.host_spans().len(), 505);
}

#[test]
fn a_device_that_is_reset_is_timed_again() {
    let run = run("resets 5", "");
    assert_eq!((run.slices().len(), run.counted("unresolved")), (50, 0));
    assert!(
        run.outcome.stdout.ends_with("rounds 5\n"),
        "{}",
        run.outcome.stdout
    );
}

#[test]
fn captures_that_no_hook_sees_are_left_alone() {
    let run = run("capture-in-between 200", "");
    assert_eq!(run.outcome.stdout, bare("capture-in-between 200", ""));
    assert_eq!(
        run.counted("rejected_stale") + run.counted("rejected_impossible"),
        0
    );
    let slices = run.slices();
    let mut names = slices.iter().map(|slice| &slice["name"]);
    assert!(
        names.all(|name| name != "sim_add_one"),
        "a captured kernel has not run"
    );
    assert_eq!(run.phase("s"), slices.len());
    assert!(run.counted("captured") > 0);
}
