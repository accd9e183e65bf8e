//! Compares launch timing with what the simulated NPU really did, which the simulator logs.

mod mspti;
mod run;

use e2e::chance::rounds;
use e2e::host_support::{Outcome, track};
use run::{Run, bare, host, number, run, run_to};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the true times of the events around each kernel, for each stream in stream order.
fn true_times(truth: &[Value]) -> Vec<Vec<(f64, f64)>> {
    let mut tasks: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for task in truth {
        let stream = task["stream"].as_i64().expect("a stream");
        tasks.entry(stream).or_default().push(task);
    }
    let times = |mut tasks: Vec<&Value>| -> Vec<(f64, f64)> {
        tasks.sort_by_key(|task| (task["start_ns"].as_u64(), task["seq"].as_u64()));
        let kinds = |three: &&[&Value]| {
            [0, 1, 2].map(|at| &three[at]["kind"]) == ["event_record", "kernel", "event_record"]
        };
        let timed = tasks.windows(3).filter(kinds);
        timed
            .map(|three| (number(&three[0]["end_ns"]), number(&three[2]["end_ns"])))
            .collect()
    };
    let times = tasks.into_values().map(times);
    // A separate stream may be used to read the clock.
    times.filter(|times| !times.is_empty()).collect()
}

/// Checks each slice of a paced run against the truth. Returns the largest error and the largest stated uncertainty in µs.
fn check_slices(run: &Run) -> (f64, f64) {
    let truth = true_times(&run.truth);
    let base = run.merged.base_ns() as f64;
    let (mut worst, mut stated) = (0f64, 0f64);
    for slice in run.slices() {
        let index = slice["args"]["index"].as_u64().expect("an index") as usize;
        // The program alternates between its two streams.
        let (start, end) = truth[index % 2][index / 2];
        let error = (number(&slice["ts"]) - (start - base) / 1e3).abs();
        let uncertainty = number(&slice["args"]["uncertainty_us"]);
        assert!(error <= uncertainty + 0.05, "{error} µs off: {slice}");
        let duration = (end - start) / 1e3;
        let off = (number(&slice["dur"]) - duration).abs();
        // This allows for a tick of 20 ns at either end and for the drift of the device's clock.
        let bound = 0.1 + duration * 2e-4;
        assert!(off <= bound, "{duration} µs in truth: {slice}");
        (worst, stated) = (worst.max(error), stated.max(uncertainty));
    }
    (worst, stated)
}

/// Runs the paced program and compares its slices with the truth.
fn checked_paced_run(count: u64, pause_us: u64, variables: &str) -> Run {
    let run = run(&format!("paced {count} {pause_us}"), variables);
    let (worst, stated) = check_slices(&run);
    println!("PACED {count} {variables}: at most {worst:.2} µs off, {stated:.2} µs stated");
    assert_eq!(run.phase("s"), run.slices().len());
    run
}

#[test]
fn every_launch_has_a_span_a_slice_and_a_flow_between_them() {
    let count = rounds(3000, 500_000);
    let run = run(&format!("launches {count} 3"), "ASCEND_SIM_KERNEL_US=5");
    let expected = format!("launched {count}, 0 failed");
    assert!(run.outcome.stdout.starts_with(&expected));
    let slices = run.slices();
    assert_eq!((slices.len(), run.host_spans()), (count, count));
    assert_eq!((run.phase("s"), run.phase("f")), (count, count));
    assert_eq!(run.counted("timed"), count as u64);
    for slice in slices {
        let args = &slice["args"];
        assert_eq!(
            (&args["device_method"], &args["grid"]),
            (&json!("event_pair"), &json!(8))
        );
        for key in ["host_wall_us", "device_wall_us", "queue_us"] {
            assert!(number(&args[key]) >= 0.0, "{key} {slice}");
        }
        assert!(args["host_limited"].is_boolean() && args["launch"].is_number());
    }
}

#[test]
fn slices_match_the_true_times_of_the_device() {
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
        let run = checked_paced_run(count, pause_us, variables);
        assert_eq!(run.counted("timed"), count, "{variables}");
    }
}

#[test]
fn setting_the_clock_misplaces_no_slice() {
    for by in ["by_us=-40", "by_us=2000000"] {
        let step = format!("ASCEND_SIM_CLOCK_STEP=after_s=0.5,{by}");
        let run = checked_paced_run(2000, 500, &step);
        let series = ["clock_set", "impossible", "reversed", "stale"];
        let rejected = series.map(|why| run.counted(&format!("rejected_{why}")));
        let rejected: u64 = rejected.into_iter().sum();
        assert_eq!(run.counted("timed") + rejected, 2000);
        assert!(rejected < 100, "{rejected}");
        assert!(run.merged.count_named("device_clock_set") >= 1);
    }
}

/// Asserts that each slice contains a kernel according to the true times, within the stated uncertainty, because an event pair encloses its kernel.
fn check_enclosed_kernels(run: &Run) {
    let us = |time: &Value| (number(time) - run.merged.base_ns() as f64) / 1e3;
    let kernels = run.truth.iter().filter(|task| task["kind"] == "kernel");
    let kernels: Vec<(f64, f64)> = kernels
        .map(|task| (us(&task["start_ns"]), us(&task["end_ns"])))
        .collect();
    for slice in run.slices() {
        let (start, dur) = (number(&slice["ts"]), number(&slice["dur"]));
        let slack = number(&slice["args"]["uncertainty_us"]) + 1.0;
        let holds = |(from, to): &(f64, f64)| start <= from + slack && *to <= start + dur + slack;
        assert!(kernels.iter().any(holds), "no kernel ran within {slice}");
    }
}

/// Returns the number of slices that overlap another slice on their track, which viewers cannot show.
fn overlaps(run: &Run) -> usize {
    // The times are µs with three decimals. Whole ns compare exactly.
    let ns = |value: &Value| (number(value) * 1e3).round() as i64;
    let slices = run.slices().into_iter();
    let mut slices: Vec<_> = slices
        .map(|slice| (track(slice), ns(&slice["ts"]), ns(&slice["dur"])))
        .collect();
    slices.sort_unstable();
    let overlap = |two: &&[(_, i64, i64)]| two[0].0 == two[1].0 && two[1].1 < two[0].1 + two[0].2;
    slices.windows(2).filter(overlap).count()
}

#[test]
fn nested_launches_and_launches_from_two_threads_have_separate_tracks() {
    for (arguments, slices) in [("nested 200", 600), ("shared 1000", 2000)] {
        let run = run(arguments, "");
        assert_eq!(run.slices().len(), slices, "{arguments}");
        check_enclosed_kernels(&run);
        assert_eq!(overlaps(&run), 0, "{arguments}");
    }
}

#[test]
fn two_devices_have_separate_clocks_even_during_a_capture() {
    let clocks = "ASCEND_SIM_CLOCK_OFFSET_S=0=100,1=7000 ASCEND_SIM_DRIFT_PPM=0=100,1=-100";
    let run = run("two-devices 400", clocks);
    check_enclosed_kernels(&run);
    let slices = run.slices().into_iter();
    let processes: BTreeSet<u64> = slices.map(|slice| track(slice).0).collect();
    assert_eq!(processes.len(), 2, "a process for each device");
    let (timed, captured) = (run.counted("timed"), run.counted("captured"));
    assert_eq!(timed + captured, 801);
    assert!(timed > 600, "{timed}");
    assert_eq!(run.counted("rejected_impossible"), 0);
}

#[test]
fn a_program_with_more_launches_than_event_pairs_continues_undisturbed() {
    let variables = "ASCEND_SIM_KERNEL_US=20 ASCEND_SIM_DEPTH=100000";
    let run = run("added 9000", variables);
    assert_eq!(run.outcome.stdout, bare("added 9000", variables));
    assert!(run.outcome.stdout.contains("added 9000 of 9000, 0 failed"));
    let (timed, left) = (run.counted("timed"), run.counted("no_pair"));
    assert_eq!(timed + left, 9000);
    assert!(timed > 0 && left > 0, "{timed} timed, {left} left out");
    assert_eq!(run.host_spans(), 9000, "each launch is shown on the host");
}

#[test]
fn failing_calls_and_a_lost_device_do_not_change_the_program() {
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
        assert_eq!(run.host_spans(), 60, "{fault}");
        assert_eq!(run.phase("s"), run.slices().len(), "{fault}");
    }
}

#[test]
fn a_kill_keeps_every_launch_that_had_ended() {
    let host = host("killed 500", "ASCEND_SIM_KERNEL_US=20");
    let run = run_to(host, Outcome::was_killed);
    let ended = run.slices().len();
    assert!((500..=505).contains(&ended), "{ended}");
    assert_eq!(run.host_spans(), 505);
}

#[test]
fn a_device_that_is_reset_is_timed_again() {
    let run = run("resets 5", "");
    assert_eq!((run.slices().len(), run.counted("unresolved")), (50, 0));
}
