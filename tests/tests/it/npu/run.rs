//! Runs of the NPU program, with the recording and the simulator's log of what the device really did.

use e2e::host_support::{Host, Merged, Outcome, library, scratch};
use serde_json::Value;
use std::collections::BTreeSet;

const NPU: &str = env!("CARGO_BIN_EXE_npu");

/// A run of the program, with its trace and the simulator's log.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) merged: Merged,
    pub(crate) truth: Vec<Value>,
}

/// Prepares the program with the simulator. Arguments and variables (`NAME=VALUE`) are separated by spaces.
pub(crate) fn host(arguments: &str, variables: &str) -> Host {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let host = Host::new(NPU)
        .arguments(&arguments)
        .variable("SA_PROFILE_SIM_LIBRARY", library("libascendcl.so"))
        .variable("SA_PROFILE_DEVICE", "sim");
    let variables = variables.split_whitespace().map(|word| {
        let variable = word.split_once('=');
        variable.expect("a name and a value")
    });
    variables.fold(host, |host, (name, value)| host.variable(name, value))
}

/// Runs a host and checks its outcome with `end`.
pub(crate) fn run_to(host: Host, end: fn(Outcome) -> Outcome) -> Run {
    let dir = scratch();
    let (run, truth) = (dir.path().join("run"), dir.path().join("truth.jsonl"));
    let host = host.variable("ASCEND_SIM_TRUTH", &truth).recorded_in(&run);
    let outcome = end(host.deadline(std::time::Duration::from_secs(900)).run());
    let truth = std::fs::read_to_string(&truth).unwrap_or_default();
    let tasks = truth.lines();
    Run {
        outcome,
        merged: Merged::newest(&run),
        truth: tasks
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
    }
}

/// Runs the program, which must succeed.
pub(crate) fn run(arguments: &str, variables: &str) -> Run {
    run_to(host(arguments, variables), Outcome::quiet)
}

/// Returns the highest value of a series of a counter.
pub(crate) fn highest(merged: &Merged, counter: &str, series: &str) -> u64 {
    let counters = merged
        .events_named(counter)
        .filter(|event| event["ph"] == "C");
    let values = counters.filter_map(|event| event["args"][series].as_u64());
    values.max().unwrap_or(0)
}

/// Returns the program's output without timing.
pub(crate) fn bare(arguments: &str, variables: &str) -> String {
    host(arguments, variables)
        .variable("NPU_BARE", "1")
        .run()
        .quiet()
        .stdout
}

impl Run {
    /// Returns the slices on devices.
    pub(crate) fn slices(&self) -> Vec<&Value> {
        let slices = self.merged.events().iter();
        slices
            .filter(|event| event["ph"] == "X" && event["args"]["uncertainty_us"].is_number())
            .collect()
    }

    /// Returns the indices of the slices in trace order.
    pub(crate) fn indices(&self) -> Vec<u64> {
        let slices = self.slices().into_iter();
        slices
            .filter_map(|slice| slice["args"]["index"].as_u64())
            .collect()
    }

    /// Returns the highest value of a series of the counter `launches`.
    pub(crate) fn counted(&self, series: &str) -> u64 {
        highest(&self.merged, "launches", series)
    }

    /// Returns the number of flow events of a phase.
    pub(crate) fn phase(&self, phase: &str) -> usize {
        let events = self.merged.events().iter();
        events
            .filter(|event| event["ph"] == phase && event["cat"] == "HostToDevice")
            .count()
    }

    /// Returns the number of launches that have a span on the host.
    pub(crate) fn host_spans(&self) -> usize {
        let spans = self.merged.events().iter().filter(|event| {
            let args = &event["args"];
            event["ph"] == "X" && args["launch"].is_number() && args["uncertainty_us"].is_null()
        });
        let indices: BTreeSet<_> = spans.map(|span| span["args"]["index"].as_u64()).collect();
        indices.len()
    }
}

/// Returns a number in an event as a float.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}
