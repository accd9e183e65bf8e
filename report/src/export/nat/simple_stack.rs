//! Calls by name: how long they took, and how many there were at once.

use super::call::Call;
use super::levels::Levels;
use crate::quantiles::Quantiles;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of the calls of models and tools that ended.
pub(super) fn json(calls: &[&Call]) -> Value {
    let mut of_name: BTreeMap<String, Vec<&Call>> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is_work()) {
        of_name.entry(call.key()).or_default().push(call);
    }
    let of = |(key, calls): (String, Vec<&Call>)| (key, of_calls(&calls));
    let all: Map<String, Value> = of_name.into_iter().map(of).collect();
    Value::Object(all)
}

fn of_calls(calls: &[&Call]) -> Value {
    let durations = Quantiles::of(calls.iter().filter_map(|call| call.dur_ns()).collect());
    let at_once = Levels::of(calls.iter().filter_map(|call| call.time())).max();
    let mean_s = durations.mean_ns / 1e9;
    json!({
        "operation_type": calls[0].kind,
        "operation_name": calls[0].name,
        "usage_count": calls.len(),
        "avg_duration": mean_s,
        "p95_duration": durations.p95_ns / 1e9,
        "p99_duration": durations.p99_ns / 1e9,
        "max_concurrency": at_once,
        "bottleneck_score": mean_s * at_once as f64,
    })
}
