//! How many calls of the runtime a launch costs on the thread that makes it.

use crate::ground::{Ground, beside, end};
use std::collections::BTreeMap;

/// What the program says of each kind of launch: the mean number of calls without its own one.
fn added(times: u32, sample: &str) -> BTreeMap<String, f64> {
    let ground = Ground::new();
    std::os::unix::fs::symlink(beside("libascendcl.so"), ground.path("libascendcl.so")).unwrap();
    let headers = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../ascend-sys/sim/tests/conformance"
    );
    ground.program("counted", &["counted.c"], &[headers, "-l:libascendcl.so"]);
    let mut command = ground.recorded(ground.path("counted"));
    let ended = end(command
        .arg(times.to_string())
        .env("SA_PROFILE_DEVICE", "sim")
        .env("SA_PROFILE_SIM_LIBRARY", ground.path("libascendcl.so"))
        .env("SA_PROFILE_DEVICE_SAMPLE", sample)
        .env("ASCEND_SIM_KERNEL_US", "0"));
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    let lines = ended.stdout.lines().map(|line| {
        let (what, numbers) = line.split_once(" at most ").unwrap();
        let (what, mean) = what.rsplit_once(' ').unwrap();
        assert!(numbers.parse::<u32>().unwrap() < 20, "{line}");
        (what.to_owned(), mean.parse::<f64>().unwrap() - 1.0)
    });
    lines.collect()
}

#[test]
fn a_timed_launch_makes_four_calls() {
    // After 5,000 launches nobody is taken to ask for tasks.
    let added = added(6000, "1");
    let is = |what: &str, most: f64| {
        let calls = added[what];
        assert!((most - 0.5..=most).contains(&calls), "{what}: {added:?}");
    };
    // Eight in the first 5,000 launches.
    assert!((7.0..=8.0).contains(&added["unasked"]), "{added:?}");
    is("quiet", 4.0);
    is("another stream was made", 4.0);
    is("another stream", 4.0);
    is("asked", 8.0);
    // The default stream is another one in each context: it is asked for each time.
    is("default stream", 13.0);
}

#[test]
fn an_untimed_launch_makes_none() {
    let added = added(200, "1000000000");
    assert!(added.values().all(|calls| *calls < 0.1), "{added:?}");
}
