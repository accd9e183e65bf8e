//! Calls that often follow each other.

use super::call::Call;
use super::example::Example;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The longest pattern that is looked for.
const LONGEST: usize = 8;
/// Requests that have to have it.
const LEAST: usize = 2;
/// Patterns that are listed.
const TOP: usize = 10;

/// What calls are counted as, each with a number.
#[derive(Default)]
struct Keys {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Keys {
    fn number(&mut self, call: &Call) -> usize {
        let key = call.key();
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        self.names.push(key.clone());
        self.numbers.insert(key, self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Where a pattern was found.
#[derive(Default)]
struct Found {
    /// In which requests, in their order.
    examples: Vec<usize>,
    times: u64,
    sum_ns: f64,
}

impl Found {
    fn mean_s(&self) -> f64 {
        self.sum_ns / self.times.max(1) as f64 / 1e9
    }
}

/// Of the calls of models and tools that ended: sequences in which one begins right behind the other.
pub(super) fn json(examples: &[Example]) -> Value {
    let mut keys = Keys::default();
    let mut found: HashMap<Vec<usize>, Found> = HashMap::new();
    for (number, example) in examples.iter().enumerate() {
        let calls = example.calls.iter().filter(|call| call.is_work());
        let calls: Vec<(usize, i64)> = calls
            .filter_map(|call| Some((keys.number(call), call.dur_ns()?)))
            .collect();
        for from in 0..calls.len() {
            for to in from + 1..=calls.len().min(from + LONGEST) {
                let part = &calls[from..to];
                let pattern = part.iter().map(|(key, _)| *key).collect();
                let of = found.entry(pattern).or_default();
                if of.examples.last() != Some(&number) {
                    of.examples.push(number);
                }
                of.times += 1;
                of.sum_ns += part.iter().map(|(_, ns)| *ns as f64).sum::<f64>();
            }
        }
    }
    found.retain(|_, of| of.examples.len() >= LEAST);
    let of = |(pattern, of): (Vec<usize>, Found)| {
        json!({
            "pattern": pattern.into_iter().map(|key| &keys.names[key]).collect::<Vec<_>>(),
            "frequency": of.examples.len(),
            "coverage": of.examples.len() as f64 / examples.len().max(1) as f64,
            "average_duration": of.mean_s(),
            "examples_containing": of.examples,
        })
    };
    json!({"patterns": first(found).into_iter().map(of).collect::<Vec<_>>()})
}

/// Those in most requests, the longest of them first.
fn first(found: HashMap<Vec<usize>, Found>) -> Vec<(Vec<usize>, Found)> {
    let mut found: Vec<(Vec<usize>, Found)> = found.into_iter().collect();
    found.sort_by(|(one_pattern, one), (other_pattern, other)| {
        let by_number = other.examples.len().cmp(&one.examples.len());
        let by_time = other.mean_s().total_cmp(&one.mean_s());
        by_number.then(by_time).then(one_pattern.cmp(other_pattern))
    });
    found.truncate(TOP);
    found
}
