//! What the simulated runtime says really happened, against what the program saw and what was asked for.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

mod program;

/// The lines that a run of this case wrote, and what it printed.
fn truth_of(case: &str, settings: &[(&str, &str)]) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let name: PathBuf = folder.path().join("truth.{pid}.jsonl");
    let mut command: Command = program::conformance(case);
    let output = command
        .envs(settings.iter().copied())
        .env("ASCEND_SIM_TRUTH", &name)
        .output()
        .expect("a run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .collect();
    assert_eq!(files.len(), 1, "one process");
    let path = files[0].as_ref().expect("a file").path();
    (
        lines(&path),
        String::from_utf8(output.stdout).expect("text"),
    )
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the truth");
    let parsed = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"));
    parsed.collect()
}

fn number(line: &Value, key: &str) -> u64 {
    line[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {line}"))
}

#[test]
fn every_task_is_told_in_order_with_its_times() {
    let settings = [
        ("ASCEND_SIM_KERNELS", "k=3000"),
        ("ASCEND_SIM_CLOCK_OFFSET_S", "100"),
    ];
    let (lines, printed) = truth_of("work", &settings);
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["kind"].as_str())
        .collect();
    let expected = [
        "kernel",
        "kernel",
        "kernel",
        "event_record",
        "memcpy",
        "kernel",
        "kernel",
        "replay",
    ];
    assert_eq!(kinds, expected);
    let mut last_ns = 0;
    for line in lines.iter().filter(|line| line["kind"] != "replay") {
        let (launch, start, end) = (
            number(line, "launch_ns"),
            number(line, "start_ns"),
            number(line, "end_ns"),
        );
        assert!(
            launch <= start && last_ns <= start && start <= end,
            "{line}"
        );
        assert_eq!(
            number(line, "end_ticks"),
            (end + 100_000_000_000) / 20,
            "{line}"
        );
        assert_eq!(
            number(line, "start_ticks"),
            (start + 100_000_000_000) / 20,
            "{line}"
        );
        if line["kind"] == "kernel" {
            assert!(end - start >= 3_000_000, "{line}");
            assert_eq!(line["name"], "k");
        }
        last_ns = end;
    }
    let replay = lines.last().expect("lines");
    assert!(
        number(replay, "start_ns") <= number(&lines[5], "start_ns")
            && last_ns <= number(replay, "end_ns")
    );
    assert_eq!(
        (number(&lines[5], "graph"), lines[0].get("graph")),
        (1, None)
    );
    let seqs: Vec<u64> = lines.iter().map(|line| number(line, "seq")).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 6, 6]);
    let us: u64 = printed.trim().parse().expect("the event's timestamp");
    assert_eq!(
        us,
        number(&lines[3], "end_ticks") / 50,
        "the program saw the record's time, truncated"
    );
}

#[test]
fn events_are_stamped_by_a_clock_that_drifts_and_steps() {
    let settings = [
        ("ASCEND_SIM_CLOCK_OFFSET_S", "100"),
        ("ASCEND_SIM_DRIFT_PPM", "-100"),
        ("ASCEND_SIM_CLOCK_STEP", "at_ns=1,by_us=-5000000"),
    ];
    let (lines, printed) = truth_of("work", &settings);
    let record = lines.iter().find(|line| line["kind"] == "event_record");
    let record = record.expect("an event");
    let host_ns = number(record, "end_ns");
    let device_ns = host_ns - host_ns / 10_000 + 95_000_000_000;
    let us: u64 = printed.trim().parse().expect("the event's timestamp");
    assert!(us.abs_diff(device_ns / 1000) <= 1, "{us}, {device_ns} ns");
}

#[test]
fn drawn_durations_keep_their_bounds() {
    let settings = [
        ("ASCEND_SIM_KERNELS", "k=200..900"),
        ("ASCEND_SIM_SEED", "7"),
    ];
    let (lines, _) = truth_of("work", &settings);
    let kernels: Vec<u64> = lines
        .iter()
        .filter(|line| line["kind"] == "kernel")
        .map(|line| number(line, "end_ns") - number(line, "start_ns"))
        .collect();
    assert_eq!(kernels.len(), 5);
    assert!(kernels.iter().all(|ns| *ns >= 200_000), "{kernels:?}");
    let least = kernels.iter().min().expect("kernels");
    assert!(
        kernels.iter().any(|ns| ns > &(least + 10_000)),
        "all alike: {kernels:?}"
    );
}

#[test]
fn a_forked_child_ends_and_writes_nothing() {
    let (lines, _) = truth_of("forked", &[("ASCEND_SIM_KERNELS", "zero=0")]);
    for (stream, tasks) in [(0, 4), (1, 20_000)] {
        let own = lines.iter().filter(|line| line["stream"] == stream);
        let seqs: Vec<u64> = own.map(|line| number(line, "seq")).collect();
        let expected: Vec<u64> = (1..=tasks).collect();
        assert!(seqs == expected, "{} of stream {stream}", seqs.len());
    }
}

/// On two loaded cores of a virtual machine a million and more; the issue is that nothing wakes a thread for each launch.
#[test]
fn measured_launches_of_empty_kernels_are_many() {
    let mut command = program::conformance("speed");
    let output = command
        .env("ASCEND_SIM_KERNEL_US", "0")
        .output()
        .expect("a run");
    let said = String::from_utf8(output.stdout).expect("text");
    let rate = said
        .lines()
        .find_map(|line| line.strip_prefix("RESULT sim_launches_per_s "));
    let rate: f64 = rate
        .and_then(|rate| rate.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!(rate >= 200_000.0, "{said}");
}
