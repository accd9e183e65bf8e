//! Tests the scheduler with a complete run in a small cache.

use std::collections::BTreeMap;

use super::*;

const LIMITS: Limits = Limits {
    max_batch: 3,
    prefill_tokens: 10,
};

#[test]
fn any_load_finishes_with_every_token_exactly_once_and_the_cache_never_overflows() {
    let load = (0..40).map(|n| (format!("r{n}"), 1 + n * 7 % 11, 1 + n * 5 % 13));
    let load: Vec<(String, usize, usize)> = load.collect();
    let mut scheduler = Scheduler::new(LIMITS, 7, 4);
    for (id, prompt, max_tokens) in &load {
        let request = NewRequest {
            request_id: id.clone(),
            prompt: vec![7; *prompt],
            max_tokens: *max_tokens,
        };
        scheduler.add(request).unwrap();
    }
    let mut tokens: BTreeMap<String, usize> = BTreeMap::new();
    let mut finished = Vec::new();
    for _ in 0..2000 {
        let batch = scheduler.schedule();
        assert!(scheduler.pool().used() <= 7);
        assert!(batch.sequences().count() <= LIMITS.max_batch);
        let prefilled: usize = batch
            .prefill
            .iter()
            .map(|sequence| sequence.tokens.len())
            .sum();
        assert!(batch.prefill.len() <= 1 || prefilled <= LIMITS.prefill_tokens);
        let sampled = batch
            .sequences()
            .map(|sequence| (sequence.request_id.clone(), 9));
        for output in scheduler.apply(&sampled.collect()) {
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
