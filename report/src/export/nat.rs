//! The files of [NeMo Agent Toolkit](https://github.com/NVIDIA/NeMo-Agent-Toolkit)'s profiler (1.9.0), from what this one recorded.

mod call;
mod example;
mod levels;
mod nested_stack;
mod optimization;
mod patterns;
mod simple_stack;
mod spikes;
mod standardized;
mod step;
mod traces;

use super::ExportFile;
use super::records::ExportRecords;
use crate::table::run_report::RunReport;
use call::Call;
use example::examples;
use serde_json::{Value, json};
use trace_merge::Error;

/// Its four files.
pub(super) fn files(report: &RunReport, records: &ExportRecords) -> Result<Vec<ExportFile>, Error> {
    let (examples, clock) = (examples(&report.request, &records.calls), records.clock);
    let mut calls: Vec<&Call> = examples.iter().flat_map(|example| &example.calls).collect();
    calls.retain(|call| call.end_ns.is_some());
    calls.sort_by_key(|call| call.start_ns);
    let metrics = json!({
        "simple_stack_analysis": simple_stack::json(&calls),
        "nested_stack_analysis": nested_stack::json(&examples, clock),
        "concurrency_spike_analysis": spikes::json(&calls, clock),
        "prefix_span_analysis": patterns::json(&examples),
    });
    let table = standardized::csv(&examples, clock)?;
    Ok(vec![
        ExportFile::new("standardized_data_all.csv", table),
        of_json(
            "all_requests_profiler_traces.json",
            &traces::json(&examples, clock),
        )?,
        of_json(
            "inference_optimization.json",
            &optimization::json(&examples),
        )?,
        of_json("workflow_profiling_metrics.json", &metrics)?,
    ])
}

fn of_json(name: &'static str, value: &Value) -> Result<ExportFile, Error> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Error::Usage(format!("JSON: {error}")))?;
    Ok(ExportFile::new(name, text + "\n"))
}
