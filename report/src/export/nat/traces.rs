//! `all_requests_profiler_traces.json`: the steps of each request.

use super::example::Example;
use super::step::{Step, steps};
use crate::export::trace_clock::TraceClock;
use serde_json::{Value, json};

pub(super) fn json(examples: &[Example], clock: TraceClock) -> Value {
    let of = |(number, example): (usize, &Example)| {
        let steps = steps(example);
        let steps: Vec<Value> = steps.iter().map(|step| of_step(step, clock)).collect();
        json!({"request_number": number, "intermediate_steps": steps})
    };
    examples.iter().enumerate().map(of).collect()
}

fn of_step(step: &Step<'_>, clock: TraceClock) -> Value {
    let (prompt, completion) = step.tokens();
    let cached = step.call.cached_tokens.filter(|_| step.is_end).unwrap_or(0);
    let began = step.is_end.then(|| clock.seconds(step.call.start_ns));
    json!({
        "parent_id": step.parent,
        "function_ancestry": {
            "function_id": step.function.id,
            "function_name": step.function.name,
            "parent_id": step.function.parent_id,
            "parent_name": step.function.parent_name,
        },
        "payload": {
            "event_type": step.event_type(),
            "event_timestamp": clock.seconds(step.at_ns),
            "span_event_timestamp": began,
            "framework": null,
            "name": step.call.name,
            "tags": null,
            "metadata": step.is_end.then(|| json!({})),
            "data": {"input": null, "output": null, "chunk": null, "payload": null},
            "usage_info": {
                "token_usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "cached_tokens": cached,
                    "reasoning_tokens": 0,
                    "total_tokens": prompt.saturating_add(completion),
                },
                "num_llm_calls": 0,
                "seconds_between_calls": 0,
            },
            "UUID": step.call.uuid,
        },
    })
}
