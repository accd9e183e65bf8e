//! How many calls of the runtime a launch costs on the thread that makes it.

use crate::ground::{Ground, SIMULATED, end};
use std::collections::BTreeMap;

/// The calls of a launch without its own one.
#[derive(Debug)]
struct Added {
    least: u32,
    mean: f64,
}

/// What the program says of each kind of launch.
fn added(times: u32, sample: &str) -> BTreeMap<String, Added> {
    let ground = Ground::with_simulator();
    ground.program("counted", &["counted.c"], &SIMULATED);
    let mut command = ground.recorded(ground.path("counted"));
    let ended = end(command
        .arg(times.to_string())
        .env("SA_PROFILE_DEVICE", "sim")
        .env("SA_PROFILE_SIM_LIBRARY", ground.path("libascendcl.so"))
        .env("SA_PROFILE_DEVICE_SAMPLE", sample)
        .env("ASCEND_SIM_KERNEL_US", "0"));
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    let lines = ended.stdout.lines().map(|line| {
        let (what, numbers) = line.split_once(" at least ").unwrap();
        let (least, mean) = numbers.split_once(" on average ").unwrap();
        let added = Added {
            least: least.parse::<u32>().unwrap() - 1,
            mean: mean.parse::<f64>().unwrap() - 1.0,
        };
        (what.to_owned(), added)
    });
    lines.collect()
}

#[test]
fn a_timed_launch_makes_four_calls() {
    // The device's thread may come late with the pairs on a busy machine: then each launch makes a new one.
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(added(4000, "1"));
        if runs.last().is_some_and(makes_four_calls) {
            return;
        }
    }
    panic!("{runs:?}");
}

fn makes_four_calls(added: &BTreeMap<String, Added>) -> bool {
    let calls = [
        ("unasked", 8),
        ("quiet", 4), // after 5,000 launches nobody is taken to ask for tasks
        ("another stream was made", 4),
        ("another stream", 4),
        ("asked", 8),
        ("default stream", 13), // is another one in each context, so where it is is asked each time
    ];
    calls.into_iter().all(|(what, calls)| {
        let Added { least, mean } = added[what];
        least == calls && mean < f64::from(calls) + 2.1 // with a new pair for each
    })
}

#[test]
fn an_untimed_launch_makes_none() {
    let added = added(200, "1000000000");
    assert!(added.values().all(|added| added.mean < 0.1), "{added:?}");
}
