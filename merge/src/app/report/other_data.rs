//! What the trace says of itself.

use super::Report;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What stands in the trace under `otherData`.
pub(crate) fn other_data(report: &Report) -> Value {
    let mut data = json!({
        "tool": "trace-merge",
        "version": report.version,
        "base_ns": report.base_ns,
        "events": report.events_total,
        "unfinished_spans": report.unfinished_spans,
        "lost_events": report.lost_events,
        "damage": report.damage_by_kind,
        "window": report.window,
    });
    let runs = report.inputs.iter().filter_map(|input| input.run.as_ref());
    let runs: BTreeSet<&String> = runs.collect();
    if !runs.is_empty() {
        data["runs"] = json!(runs);
    }
    if report.clocks.len() > 1 {
        data["clocks"] = json!(report.clocks);
    }
    if let Some(filter) = &report.filter {
        data["filter"] = json!(filter);
    }
    if report.repaired_total > 0 {
        data["repaired"] = json!(report.repaired_by_kind);
    }
    let overlapping = [
        ("overlapping_spans", report.overlapping_spans),
        ("overlapping_spans_left", report.overlapping_spans_left),
    ];
    if let Some(links) = &report.links {
        data["linked_requests"] = json!(links.requests);
    }
    for (key, count) in overlapping.into_iter().filter(|(_, count)| *count > 0) {
        data[key] = json!(count);
    }
    data
}
