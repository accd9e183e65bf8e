//! Runs of the program, with what they recorded and what the device really did.

use e2e::host_support::{Host, Merged, Outcome, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const NPU: &str = env!("CARGO_BIN_EXE_npu");

/// A run of the program with what it recorded, and what the device really did.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) merged: Merged,
    pub(crate) truth: Vec<Value>,
}

fn simulator() -> String {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libascendcl.so").display().to_string()
}

/// The program with the simulator. Arguments and variables are words, of a variable `NAME=VALUE`.
pub(crate) fn host(arguments: &str, variables: &str) -> Host {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let host = Host::new(NPU)
        .arguments(&arguments)
        .variable("SA_PROFILE_SIM_LIBRARY", simulator())
        .variable("SA_PROFILE_DEVICE", "sim");
    let variables = variables.split_whitespace().map(|word| {
        let variable = word.split_once('=');
        variable.expect("a name and a value")
    });
    variables.fold(host, |host, (name, value)| host.variable(name, value))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// A run that ends in a way.
pub(crate) fn run_to(host: Host, end: fn(Outcome) -> Outcome) -> Run {
    let dir = scratch();
    let (run, truth) = (dir.path().join("run"), dir.path().join("truth.jsonl"));
    let host = host.variable("ASCEND_SIM_TRUTH", &truth).recorded_in(&run);
    let outcome = end(host.deadline(std::time::Duration::from_secs(900)).run());
    Run {
        outcome,
        merged: Merged::newest(&run),
        truth: lines(&truth),
    }
}

/// A run that ends well.
pub(crate) fn run(arguments: &str, variables: &str) -> Run {
    run_to(host(arguments, variables), Outcome::quiet)
}

/// The highest value of a counter's series.
pub(crate) fn highest(merged: &Merged, counter: &str, series: &str) -> u64 {
    let counters = merged.of_name(counter).filter(|event| event["ph"] == "C");
    let values = counters.filter_map(|event| event["args"][series].as_u64());
    values.max().unwrap_or(0)
}

/// What the same program prints where nothing is timed.
pub(crate) fn bare(arguments: &str, variables: &str) -> String {
    host(arguments, variables)
        .variable("NPU_BARE", "1")
        .run()
        .quiet()
        .stdout
}

impl Run {
    /// Slices on devices.
    pub(crate) fn slices(&self) -> Vec<&Value> {
        let is_slice =
            |event: &&Value| event["ph"] == "X" && event["args"]["uncertainty_us"].is_number();
        self.merged.events().iter().filter(is_slice).collect()
    }

    /// The highest value of a series of the counter of launches.
    pub(crate) fn counted(&self, series: &str) -> u64 {
        highest(&self.merged, "launches", series)
    }

    /// Flow events of a phase.
    pub(crate) fn phase(&self, phase: &str) -> usize {
        let is_flow = |event: &&Value| event["ph"] == phase && event["cat"] == "HostToDevice";
        self.merged.events().iter().filter(is_flow).count()
    }

    /// The host's spans of launches, by index.
    pub(crate) fn host_spans(&self) -> BTreeMap<u64, &Value> {
        let spans = self.merged.events().iter();
        let spans = spans.filter(|event| {
            let args = &event["args"];
            event["ph"] == "X" && args["launch"].is_number() && args["uncertainty_us"].is_null()
        });
        spans
            .map(|event| (event["args"]["index"].as_u64().unwrap_or(u64::MAX), event))
            .collect()
    }
}
