//! What an engine put into its steps.

use serde::Serialize;

/// What an engine put into its steps, as its counters `tokens` and `speculation` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Batching {
    /// The engine, by its number among the processes.
    pub process: usize,
    /// Steps.
    pub steps: u64,
    /// Tokens of prompts in all steps together.
    pub prefill_tokens: u64,
    /// Tokens of answers.
    pub decode_tokens: u64,
    /// Steps that had both.
    pub mixed_steps: u64,
    /// Steps that had answers and no prompt, and of which it is known how long they took.
    pub decode_steps: u64,
    /// The mean time of those, from the output of the step before to theirs.
    pub decode_step_ns: f64,
    /// That of steps with both: what this takes longer is what a prompt adds to the time between tokens of others.
    pub mixed_step_ns: f64,
    /// Tokens that were speculated, and those of them that were right.
    pub drafted_tokens: u64,
    /// See there.
    pub accepted_tokens: u64,
}

impl Batching {
    /// How much longer a step takes with a prompt in it, and the share of the time of answers that this costs.
    pub fn stall(&self) -> Option<(f64, f64)> {
        let is_known = self.decode_step_ns > 0.0 && self.mixed_step_ns > 0.0;
        let more_ns = self.mixed_step_ns - self.decode_step_ns;
        let (mixed_steps, decode_steps) = (self.mixed_steps as f64, self.decode_steps as f64);
        let all_ns = mixed_steps * self.mixed_step_ns + decode_steps * self.decode_step_ns;
        is_known.then(|| (more_ns, mixed_steps * more_ns / all_ns))
    }
}
