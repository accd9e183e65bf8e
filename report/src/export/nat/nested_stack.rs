//! Calls inside each other, by the parents that they name: what each took by itself, and with all in it.

use super::call::Call;
use super::example::Example;
use super::levels::{Levels, Segment};
use crate::export::trace_clock::TraceClock;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;

/// Calls that are told apart from the others, those with most.
const TOP: usize = 5;

/// A call, and what it took.
struct Node<'a> {
    call: &'a Call,
    time: (i64, i64),
    self_ns: i64,
}

impl Node<'_> {
    /// What it took with all in it.
    fn dur_ns(&self) -> i64 {
        self.time.1 - self.time.0
    }
}

/// Of the calls that ended.
pub(super) fn json(examples: &[Example], clock: TraceClock) -> Value {
    let nodes: Vec<Node<'_>> = examples.iter().flat_map(nodes).collect();
    let levels = Levels::of(nodes.iter().map(|node| node.time));
    let of_node = |node: &Node<'_>| {
        let dur_s = node.dur_ns() as f64 / 1e9;
        json!({
            "uuid": node.call.uuid,
            "operation_type": node.call.kind,
            "operation_name": node.call.name,
            "start_time": clock.seconds(node.time.0),
            "end_time": clock.seconds(node.time.1),
            "duration": dur_s,
            "self_time": node.self_ns as f64 / 1e9,
            "subtree_time": dur_s,
            "concurrency_midpoint": levels.at_middle(node.time) as f64,
            "bottleneck_score": dur_s,
        })
    };
    let metrics: Map<String, Value> = nodes
        .iter()
        .map(|node| (node.call.uuid.clone(), of_node(node)))
        .collect();
    let mut top: Vec<&Node<'_>> = nodes.iter().collect();
    top.sort_by_key(|node| Reverse(node.dur_ns()));
    top.truncate(TOP);
    let segment =
        |of: &Segment| json!([clock.seconds(of.from_ns), clock.seconds(of.to_ns), of.level]);
    let at = |share| levels.at_share(share) as f64;
    json!({
        "concurrency": {
            "timeline_segments": levels.segments.iter().map(segment).collect::<Vec<_>>(),
            "p50": at(0.5),
            "p90": at(0.9),
            "p95": at(0.95),
            "p99": at(0.99),
        },
        "node_metrics": metrics,
        "top_bottlenecks": top.into_iter().map(of_node).collect::<Vec<_>>(),
    })
}

/// The calls of a request. What lies in a call counts once where calls overlap, and only up to its end.
fn nodes(example: &Example) -> Vec<Node<'_>> {
    let calls = &example.calls;
    // When the calls in each one were under way.
    let mut inside: Vec<Vec<(i64, i64)>> = vec![Vec::new(); calls.len()];
    for call in calls {
        let around = call
            .parent
            .and_then(|parent| Some((parent, calls[parent].time()?)));
        let part = around.and_then(|(parent, time)| Some((parent, within(call.time()?, time)?)));
        if let Some((parent, part)) = part {
            inside[parent].push(part);
        }
    }
    let nodes = calls.iter().zip(inside).filter_map(|(call, inside)| {
        let time = call.time()?;
        let self_ns = time.1 - time.0 - covered_ns(inside);
        Some(Node {
            call,
            time,
            self_ns,
        })
    });
    nodes.collect()
}

/// The part of a time within another one.
fn within(time: (i64, i64), other: (i64, i64)) -> Option<(i64, i64)> {
    let part = (time.0.max(other.0), time.1.min(other.1));
    (part.0 < part.1).then_some(part)
}

/// How long any of these times was.
fn covered_ns(mut times: Vec<(i64, i64)>) -> i64 {
    times.sort_unstable();
    let (mut covered_ns, mut counted_ns) = (0, i64::MIN);
    for (from_ns, to_ns) in times {
        covered_ns += (to_ns - from_ns.max(counted_ns)).max(0);
        counted_ns = counted_ns.max(to_ns);
    }
    covered_ns
}
