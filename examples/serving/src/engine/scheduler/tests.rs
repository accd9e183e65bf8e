//! Tests of the scheduler: batches as a table of steps, and whole runs in a small cache.

use std::collections::BTreeMap;

use super::*;

const LIMITS: Limits = Limits {
    max_batch: 3,
    prefill_tokens: 10,
};

fn request(id: &str, prompt: usize, max_tokens: usize) -> NewRequest {
    NewRequest {
        request_id: id.to_owned(),
        prompt: vec![7; prompt],
        max_tokens,
    }
}

fn scheduler(kv_blocks: usize, requests: &[(&str, usize, usize)]) -> Scheduler {
    let mut scheduler = Scheduler::new(LIMITS, kv_blocks, 4);
    for &(id, prompt, max_tokens) in requests {
        scheduler.add(request(id, prompt, max_tokens)).unwrap();
    }
    scheduler
}

fn ids(sequences: &[crate::protocol::Sequence]) -> Vec<&str> {
    sequences
        .iter()
        .map(|sequence| sequence.request_id.as_str())
        .collect()
}

fn answer(batch: &Batch) -> BTreeMap<String, Token> {
    batch
        .sequences()
        .map(|sequence| (sequence.request_id.clone(), 9))
        .collect()
}

#[test]
fn batch_and_prefill_limits_hold_the_rest_back() {
    let mut by_batch = scheduler(100, &[("a", 1, 9), ("b", 1, 9), ("c", 1, 9), ("d", 1, 9)]);
    assert_eq!(ids(&by_batch.schedule().prefill), ["a", "b", "c"]);
    let mut by_prefill = scheduler(100, &[("a", 6, 9), ("b", 6, 9)]);
    assert_eq!(ids(&by_prefill.schedule().prefill), ["a"]);
    let mut long_prompt = scheduler(100, &[("a", 60, 9), ("b", 1, 9)]);
    assert_eq!(
        ids(&long_prompt.schedule().prefill),
        ["a"],
        "a prompt above the budget runs alone"
    );
}

#[test]
fn any_load_finishes_with_every_token_exactly_once_and_the_cache_never_overflows() {
    let load: Vec<(String, usize, usize)> = (0..40)
        .map(|n| (format!("r{n}"), 1 + n * 7 % 11, 1 + n * 5 % 13))
        .collect();
    let mut scheduler = Scheduler::new(LIMITS, 7, 4);
    for (id, prompt, max_tokens) in &load {
        scheduler.add(request(id, *prompt, *max_tokens)).unwrap();
    }
    let mut tokens: BTreeMap<String, usize> = BTreeMap::new();
    let mut finished = Vec::new();
    for _ in 0..2000 {
        let batch = scheduler.schedule();
        assert!(scheduler.pool().used() <= 7);
        for output in scheduler.apply(&answer(&batch)) {
            match output.event {
                OutputEvent::Token(_) => *tokens.entry(output.request_id).or_default() += 1,
                _ => finished.push(output.request_id),
            }
        }
    }
    assert!(scheduler.is_idle());
    assert_eq!(finished.len(), load.len());
    for (id, _, max_tokens) in &load {
        assert_eq!(tokens[id], *max_tokens, "{id}");
    }
}

#[test]
fn what_can_never_run_is_refused() {
    let mut scheduler = Scheduler::new(LIMITS, 3, 4);
    assert!(scheduler.add(request("fits", 4, 8)).is_ok());
    assert!(
        scheduler
            .add(request("long", 4, 9))
            .unwrap_err()
            .contains("4 cache blocks, the cache has 3")
    );
    assert!(scheduler.add(request("empty", 0, 1)).is_err());
    assert!(scheduler.add(request("nothing", 1, 0)).is_err());
}
