//! `standardized_data_all.csv`: a row for each begin and end of a call.

use super::example::Example;
use super::step::{Step, steps};
use crate::csv_file::{CsvFile, float};
use crate::export::call_span::CallKind;
use crate::export::trace_clock::TraceClock;
use std::collections::HashMap;
use trace_merge::Error;

/// The columns of NAT 1.9.0, with those of `compute_llm_metrics`, and without the texts.
const COLUMNS: [&str; 20] = [
    "event_type",
    "event_timestamp",
    "example_number",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "llm_name",
    "tool_name",
    "function_name",
    "function_id",
    "parent_function_name",
    "parent_function_id",
    "UUID",
    "framework",
    "NOVA-Event-ID",
    "NOVA-Requests-Remaining-In-Event",
    "NOVA-Time-To-Next-Event",
    "NOVA-Time-To-Event-End",
    "NOVA-Predicted-OSL",
    "NOVA-Time-To-Session-End",
];

/// What no time stands for.
const NONE: f64 = -1.0;

pub(super) fn csv(examples: &[Example], clock: TraceClock) -> Result<String, Error> {
    let mut file = CsvFile::new(&COLUMNS)?;
    for (number, example) in examples.iter().enumerate() {
        let steps = steps(example);
        let ahead = Ahead::of(&steps);
        for step in &steps {
            file.put(row(step, number, clock, &ahead))?;
        }
    }
    file.finish()
}

fn row(step: &Step<'_>, example: usize, clock: TraceClock, ahead: &Ahead<'_>) -> [String; 20] {
    let call = step.call;
    let (prompt, completion) = step.tokens();
    let name_of = |kind| match call.kind == kind {
        true => call.name.clone(),
        false => String::new(),
    };
    let answer = call.completion_tokens.filter(|_| step.is_llm_start());
    let (left, next_ms, last_ms) = ahead.from(step);
    [
        step.event_type(),
        float(clock.seconds(step.at_ns)),
        example.to_string(),
        prompt.to_string(),
        completion.to_string(),
        prompt.saturating_add(completion).to_string(),
        name_of(CallKind::Llm),
        name_of(CallKind::Tool),
        step.function.name.to_owned(),
        step.function.id.to_owned(),
        step.function.parent_name.to_owned(),
        step.function.parent_id.to_owned(),
        call.uuid.clone(),
        String::new(),
        step.function.name.to_owned(),
        float(left),
        float(next_ms),
        float(last_ms),
        answer.map_or_else(String::new, |tokens| float(tokens as f64)),
        float(ms(ahead.end_ns - step.at_ns)),
    ]
}

/// What is ahead of each step.
struct Ahead<'a> {
    /// When calls of a model begin in functions of each name.
    starts_ns: HashMap<&'a str, Vec<i64>>,
    /// The last time of the request.
    end_ns: i64,
}

impl<'a> Ahead<'a> {
    fn of(steps: &[Step<'a>]) -> Ahead<'a> {
        let mut starts_ns: HashMap<&str, Vec<i64>> = HashMap::new();
        for step in steps.iter().filter(|step| step.is_llm_start()) {
            let starts_ns = starts_ns.entry(step.function.name).or_default();
            starts_ns.push(step.at_ns);
        }
        Ahead {
            starts_ns,
            end_ns: steps.last().map_or(0, |step| step.at_ns),
        }
    }

    /// How many calls of a model begin later in the same function, and after how many ms the next and the last of them does.
    fn from(&self, step: &Step<'_>) -> (f64, f64, f64) {
        let starts_ns = self.starts_ns.get(step.function.name);
        let starts_ns = starts_ns.map_or(&[][..], Vec::as_slice);
        let later = starts_ns.partition_point(|start_ns| *start_ns <= step.at_ns);
        let in_ms = |start_ns: Option<&i64>| start_ns.map_or(NONE, |ns| ms(ns - step.at_ns));
        let later = &starts_ns[later..];
        (
            later.len() as f64,
            in_ms(later.first()),
            in_ms(later.last()),
        )
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}
