//! Times with many calls at once, and what was under way in them.

use super::call::Call;
use super::levels::{Levels, Segment};
use crate::export::call_span::CallKind;
use crate::export::trace_clock::TraceClock;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Spikes that are listed, the longest, and calls that each lists.
const MOST: usize = 1_000;
const MOST_CALLS: usize = 100;

/// Calls that are under way, in the order of their begins.
#[derive(Default)]
struct UnderWay {
    numbers: BTreeSet<usize>,
    models: u64,
    prompt_tokens: u64,
    total_tokens: u64,
}

/// What is known of the calls of models in all spikes, each once for each spike.
#[derive(Default)]
struct InSpikes {
    models: u64,
    prompt_tokens: u64,
    total_tokens: u64,
}

impl UnderWay {
    fn begins(&mut self, number: usize, call: &Call) {
        self.numbers.insert(number);
        if call.kind == CallKind::Llm {
            let (prompt, total) = tokens(call);
            self.models += 1;
            self.prompt_tokens += prompt;
            self.total_tokens += total;
        }
    }

    fn ends(&mut self, number: usize, call: &Call) {
        self.numbers.remove(&number);
        if call.kind == CallKind::Llm {
            let (prompt, total) = tokens(call);
            self.models -= 1;
            self.prompt_tokens -= prompt;
            self.total_tokens -= total;
        }
    }
}

impl InSpikes {
    fn add(&mut self, now: &UnderWay) {
        self.models += now.models;
        self.prompt_tokens = self.prompt_tokens.saturating_add(now.prompt_tokens);
        self.total_tokens = self.total_tokens.saturating_add(now.total_tokens);
    }

    fn mean(&self, tokens: u64) -> f64 {
        tokens as f64 / self.models.max(1) as f64
    }
}

/// Prompt tokens and all tokens of a call, bounded so that no sum of them overflows.
fn tokens(call: &Call) -> (u64, u64) {
    let of = |tokens: Option<u64>| tokens.unwrap_or(0).min(u64::from(u32::MAX));
    let prompt = of(call.prompt_tokens);
    (prompt, prompt + of(call.completion_tokens))
}

/// Of the calls of models and tools that ended, in the order of their begins. A time is a spike if it holds as many calls as are exceeded for a tenth of the time.
pub(super) fn json(calls: &[&Call], clock: TraceClock) -> Value {
    let calls: Vec<&Call> = calls
        .iter()
        .copied()
        .filter(|call| call.is_work())
        .collect();
    let times: Vec<(i64, i64)> = calls.iter().filter_map(|call| call.time()).collect();
    let levels = Levels::of(times.iter().copied());
    let threshold = levels.at_share(0.9).max(1);
    let (mut intervals, in_spikes) = intervals(&calls, &times, &levels, threshold);
    intervals.sort_by_key(|(of, _)| Reverse(of.to_ns - of.from_ns));
    intervals.truncate(MOST);
    intervals.sort_by_key(|(of, _)| of.from_ns);
    let interval = |(of, numbers): (Segment, Vec<usize>)| {
        let uuids = numbers.into_iter().map(|number| &calls[number].uuid);
        json!({
            "start_time": clock.seconds(of.from_ns),
            "end_time": clock.seconds(of.to_ns),
            "concurrency": of.level,
            "active_uuids": uuids.collect::<Vec<_>>(),
        })
    };
    let seconds_at = levels.ns_at();
    let seconds_at = seconds_at.iter();
    let seconds_at = seconds_at.map(|(level, ns)| (level.to_string(), json!(*ns as f64 / 1e9)));
    let at = |share| levels.at_share(share) as f64;
    json!({
        "concurrency_distribution": seconds_at.collect::<Map<String, Value>>(),
        "p50_concurrency": at(0.5),
        "p90_concurrency": at(0.9),
        "p95_concurrency": at(0.95),
        "p99_concurrency": at(0.99),
        "spike_threshold": threshold,
        "spike_intervals": intervals.into_iter().map(interval).collect::<Vec<_>>(),
        "correlation_stats": {
            "avg_prompt_tokens": in_spikes.mean(in_spikes.prompt_tokens),
            "avg_total_tokens": in_spikes.mean(in_spikes.total_tokens),
        },
        "average_latency_by_concurrency": latencies(&times, &levels),
    })
}

/// The spikes with the first of the calls in each, and what all of their calls say. One pass over begins and ends.
fn intervals(
    calls: &[&Call],
    times: &[(i64, i64)],
    levels: &Levels,
    threshold: usize,
) -> (Vec<(Segment, Vec<usize>)>, InSpikes) {
    let mut edges: Vec<(i64, bool, usize)> = Vec::new();
    for (number, (from_ns, to_ns)) in times.iter().enumerate() {
        if from_ns < to_ns {
            edges.extend([(*from_ns, true, number), (*to_ns, false, number)]);
        }
    }
    edges.sort_unstable();
    let mut edges = edges.into_iter().peekable();
    let (mut now, mut found, mut in_spikes) =
        (UnderWay::default(), Vec::new(), InSpikes::default());
    for segment in &levels.segments {
        while let Some((_, is_begin, number)) = edges.next_if(|(ns, ..)| *ns <= segment.from_ns) {
            match is_begin {
                true => now.begins(number, calls[number]),
                false => now.ends(number, calls[number]),
            }
        }
        if segment.level >= threshold {
            let numbers = now.numbers.iter().copied().take(MOST_CALLS);
            found.push((*segment, numbers.collect()));
            in_spikes.add(&now);
        }
        if found.len() >= 2 * MOST {
            found.sort_by_key(|(of, _)| Reverse(of.to_ns - of.from_ns));
            found.truncate(MOST);
        }
    }
    (found, in_spikes)
}

/// The mean duration of calls by how many there were in the middle of each.
fn latencies(times: &[(i64, i64)], levels: &Levels) -> Map<String, Value> {
    let mut of_level: BTreeMap<usize, (u64, f64)> = BTreeMap::new();
    for time in times {
        let (n, sum_ns) = of_level.entry(levels.at_middle(*time)).or_default();
        *n += 1;
        *sum_ns += (time.1 - time.0) as f64;
    }
    let mean = |(n, sum_ns): (u64, f64)| json!(sum_ns / n as f64 / 1e9);
    let levels = of_level.into_iter();
    levels
        .map(|(level, sums)| (level.to_string(), mean(sums)))
        .collect()
}
