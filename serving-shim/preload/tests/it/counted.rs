//! The number of runtime calls that a launch costs on the launching thread.

use c_programs::{Ground, SIMULATED, end};

/// Checks the number of calls that each kind of launch adds to its own: the minimum is exactly `calls`, and the average is less than `more` above that. Returns the
/// program's output if a number is wrong.
fn costs(times: u32, sample: &str, more: f64, calls: impl Fn(&str) -> f64) -> Result<(), String> {
    let ground = Ground::with_simulator();
    let program = ground.program("counted", &["counted.c"], &SIMULATED);
    let mut command = ground.timed(program);
    let ended = end(command
        .arg(times.to_string())
        .env("SA_PROFILE_DEVICE_SAMPLE", sample)
        .env("ASCEND_SIM_KERNEL_US", "0"));
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.clone().count(), 6, "{ended:?}");
    let is_so = lines.all(|line| {
        let [what, least, mean] = line.split(": ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let [least, mean] = [least, mean].map(|made| made.parse::<f64>().unwrap() - 1.0);
        least == calls(what) && mean < calls(what) + more
    });
    is_so.then_some(()).ok_or(ended.stdout)
}

#[test]
fn a_timed_launch_makes_four_calls() {
    let calls = |what: &str| match what {
        "unasked" | "asked" => 8.0,
        "default stream" => 13.0, // differs in each context, so it is looked up each time
        _ => 4.0,                 // after 5,000 launches the thread is assumed not to ask for tasks
    };
    // On a busy machine the device's thread may return the pairs late. Then each launch creates a new one, with two more calls.
    let mut runs = (0..3).map(|_| costs(4000, "1", 2.1, calls));
    let last = runs
        .find(Result::is_ok)
        .unwrap_or_else(|| costs(4000, "1", 2.1, calls));
    assert_eq!(last, Ok(()));
}

#[test]
fn an_untimed_launch_makes_none() {
    assert_eq!(costs(200, "1000000000", 0.1, |_| 0.0), Ok(()));
}
