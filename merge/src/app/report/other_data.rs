//! The description of the trace in its `otherData`.

use super::Report;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the value of `otherData` in the trace.
pub(crate) fn other_data(report: &Report) -> Value {
    let mut data = json!({
        "tool": "trace-merge",
        "version": report.version,
        "base_ns": report.clocks.base_ns,
        "events": report.events.total,
        "unfinished_spans": report.unfinished_spans,
        "lost_events": report.losses.events,
        "damage": report.damage.by_kind,
        "window": report.window,
    });
    let runs = report.inputs.iter().filter_map(|input| input.run.as_ref());
    let runs: BTreeSet<&String> = runs.collect();
    if !runs.is_empty() {
        data["runs"] = json!(runs);
    }
    if report.clocks.placements.len() > 1 {
        data["clocks"] = json!(report.clocks.placements);
    }
    if let Some(filter) = &report.filter {
        data["filter"] = json!(filter);
    }
    if report.repairs.total > 0 {
        data["repaired"] = json!(report.repairs.by_kind);
    }
    let overlapping = [
        ("overlapping_spans", report.rows.overlapping_spans),
        ("overlapping_spans_left", report.rows.overlapping_spans_left),
    ];
    if let Some(links) = &report.links {
        data["linked_requests"] = json!(links.requests);
    }
    for (key, count) in overlapping.into_iter().filter(|(_, count)| *count > 0) {
        data[key] = json!(count);
    }
    data
}
