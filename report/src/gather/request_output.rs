//! Outputs of requests, as frontends list them for each step (docs/time.md).

use super::request_moment::arg;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Suffix of the name of the span that lists the outputs of a step.
const NAME: &str = "process_outputs";

/// One output of one request. Sorted, the outputs of a request are adjacent and in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestOutput {
    /// Hash of the frontend's process and of its number for the request.
    pub(crate) key: u64,
    /// Timestamp on the engine's own clock. It is used for differences only, because it cannot be placed in the trace.
    pub(crate) engine_ns: i64,
    /// Time at which the frontend began to process the outputs of the step.
    pub(crate) ts_ns: i64,
    /// Number of the frontend's process.
    pub(crate) process: u32,
    /// Number of tokens.
    pub(crate) tokens: u32,
}

/// First steps that processes recorded after a pause. A gap between outputs that contains such a step is not an
/// inter-token latency.
#[derive(Debug, Default)]
pub(crate) struct Pauses(BTreeSet<(u32, i64)>);

impl Pauses {
    /// Records that `process` resumed recording after a pause, with the step that starts at `ts_ns`.
    pub(crate) fn add(&mut self, process: u32, ts_ns: i64) {
        self.0.insert((process, ts_ns));
    }

    /// Adds the first steps after pauses that another chunk recorded.
    pub(crate) fn merge(&mut self, mut other: Pauses) {
        self.0.append(&mut other.0);
    }

    /// Keeps only the latest step after a pause for each process.
    pub(crate) fn keep_last(&mut self) {
        let last: BTreeMap<u32, i64> = self.0.iter().copied().collect();
        self.0 = last.into_iter().collect();
    }

    /// Returns true if `process` resumed recording after a pause, at a time after `start_ns` and no later than
    /// `end_ns`.
    pub(crate) fn interrupt(&self, process: u32, start_ns: i64, end_ns: i64) -> bool {
        let first_after = self.0.range((process, start_ns.saturating_add(1))..).next();
        first_after.is_some_and(|(other, ts_ns)| *other == process && *ts_ns <= end_ns)
    }
}

impl Record for RequestOutput {}

/// Returns the key by which outputs of one request are sorted: a hash of the frontend's process number and of the
/// number that the frontend gave the request.
pub(crate) fn output_key(process: u32, number: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), process.into())
}

/// Returns one output for each request that a frontend's `process_outputs` span lists. Returns no outputs for spans
/// with another name. If the span says that recording was paused before it, its start is added to `pauses`.
pub(crate) fn outputs(
    event: &PlacedEvent<'_>,
    name: &str,
    process: u32,
    pauses: &mut Pauses,
) -> Vec<RequestOutput> {
    if !name.ends_with(NAME) {
        return Vec::new();
    }
    if event.arg("after_pause") == Some(b"true") {
        pauses.add(process, event.ts_ns);
    }
    let numbers: Vec<u64> = arg(event, "request_numbers").unwrap_or_default();
    let engine_ns = arg(event, "engine_ts_ns");
    let each: Option<Vec<Value>> = arg(event, "output_tokens_each");
    let tokens = |nth: usize| {
        let number = each.as_ref()?.get(nth)?.as_u64()?;
        u32::try_from(number).ok()
    };
    let output = |(nth, number): (usize, u64)| RequestOutput {
        key: output_key(process, number),
        engine_ns: engine_ns.unwrap_or(event.ts_ns),
        ts_ns: event.ts_ns,
        process,
        tokens: tokens(nth).unwrap_or(1),
    };
    numbers.into_iter().enumerate().map(output).collect()
}
