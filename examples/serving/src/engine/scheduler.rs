//! Continuous batching: selects the requests for the next step, within the limits of batch size, prefill tokens and cache.
//!
//! Running requests come first, oldest first. If the cache has no room for the next token of a request, the youngest request releases its
//! blocks and goes back to the head of the queue. Waiting requests are admitted as long as there is room.

use std::collections::{BTreeMap, VecDeque};

use sa_recorder::instant;

use super::kv::BlockPool;
use super::request::Request;
use crate::protocol::{Batch, NewRequest, Output, OutputEvent, Token};

/// Limits of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of requests in a batch.
    pub(crate) max_batch: usize,
    /// Maximum number of tokens of new requests in a step, unless a single request is longer.
    pub(crate) prefill_tokens: usize,
}

/// The queue and the running batch.
#[derive(Debug)]
pub(crate) struct Scheduler {
    limits: Limits,
    pool: BlockPool,
    waiting: VecDeque<Request>,
    /// The running requests, oldest first.
    running: Vec<Request>,
    /// Ids of the requests whose cache the workers may release with the next step.
    released: Vec<String>,
}

impl Scheduler {
    pub(crate) fn new(limits: Limits, kv_blocks: usize, block_tokens: usize) -> Scheduler {
        Scheduler {
            limits,
            pool: BlockPool::new(kv_blocks, block_tokens),
            waiting: VecDeque::new(),
            running: Vec::new(),
            released: Vec::new(),
        }
    }

    /// Queues a request. Fails with the reason if it can never run.
    pub(crate) fn add(&mut self, new: NewRequest) -> Result<(), String> {
        if new.prompt.is_empty() || new.max_tokens == 0 {
            return Err("a request needs a prompt and at least one token to generate".to_owned());
        }
        let needed = self.pool.blocks_for(new.prompt.len() + new.max_tokens);
        if needed > self.pool.total() {
            return Err(format!(
                "the request needs {needed} cache blocks, the cache has {}",
                self.pool.total()
            ));
        }
        self.waiting.push_back(Request::new(new));
        Ok(())
    }

    /// Drops a waiting or running request.
    pub(crate) fn abort(&mut self, id: &str) {
        self.waiting.retain(|request| request.id != id);
        if let Some(index) = self.running.iter().position(|request| request.id == id) {
            self.retire(index);
        }
    }

    pub(crate) fn abort_all(&mut self) {
        self.waiting.clear();
        self.retire_all();
    }

    /// Selects the sequences of the next step.
    pub(crate) fn schedule(&mut self) -> Batch {
        let preempted = self.make_room();
        let mut batch = Batch {
            decode: self.running.iter().map(Request::next).collect(),
            ..Batch::default()
        };
        if !preempted {
            self.admit(&mut batch);
        }
        if !batch.is_empty() {
            batch.release = std::mem::take(&mut self.released);
        }
        batch
    }

    /// Allocates the block for the next token of every running request. Returns true if a request was preempted for that.
    fn make_room(&mut self) -> bool {
        let mut preempted = false;
        let mut index = 0;
        while let Some(request) = self.running.get_mut(index) {
            let tokens = request.context_len();
            if self.pool.grow(&mut request.blocks, tokens) {
                index += 1;
            } else {
                self.preempt();
                preempted = true;
            }
        }
        preempted
    }

    /// Moves the youngest running request back to the head of the queue.
    fn preempt(&mut self) {
        let Some(mut request) = self.running.pop() else {
            return;
        };
        instant!(
            "scheduler",
            "request.preempted",
            request_id = &request.id,
            tokens = request.context_len()
        );
        self.pool.release(&mut request.blocks);
        request.reset_cache();
        self.released.push(request.id.clone());
        self.waiting.push_front(request);
    }

    /// Admits waiting requests within the limits of batch size, prefill tokens and cache.
    fn admit(&mut self, batch: &mut Batch) {
        let mut budget = self.limits.prefill_tokens;
        while self.running.len() < self.limits.max_batch {
            let Some(request) = self.waiting.front_mut() else {
                break;
            };
            let tokens = request.context_len();
            let fits = tokens <= budget || batch.prefill.is_empty();
            if !fits || !self.pool.grow(&mut request.blocks, tokens) {
                break;
            }
            budget = budget.saturating_sub(tokens);
            batch.prefill.push(request.next());
            self.running.extend(self.waiting.pop_front());
        }
    }

    /// Adds the new token to each running request, and returns the outputs.
    pub(crate) fn apply(&mut self, tokens: &BTreeMap<String, Token>) -> Vec<Output> {
        let mut outputs = Vec::new();
        let mut index = 0;
        while let Some(request) = self.running.get_mut(index) {
            let token = tokens.get(&request.id).copied();
            let last = token.is_some_and(|token| request.accept(token));
            let request_id = &request.id;
            outputs.extend(token.map(|token| output(request_id, OutputEvent::Token(token))));
            if last {
                outputs.push(output(request_id, OutputEvent::Finished));
                self.retire(index);
            } else {
                index += 1;
            }
        }
        outputs
    }

    /// Fails the running requests.
    pub(crate) fn fail_running(&mut self, reason: &str) -> Vec<Output> {
        let outputs = self.running.iter().map(|request| failed(request, reason));
        let outputs = outputs.collect();
        self.retire_all();
        outputs
    }

    /// Fails all requests.
    pub(crate) fn fail_all(&mut self, reason: &str) -> Vec<Output> {
        let mut all = self.fail_running(reason);
        let waiting = self.waiting.drain(..);
        all.extend(waiting.map(|request| failed(&request, reason)));
        all
    }

    fn retire(&mut self, index: usize) {
        let mut request = self.running.remove(index);
        self.pool.release(&mut request.blocks);
        self.released.push(request.id);
    }

    fn retire_all(&mut self) {
        while !self.running.is_empty() {
            self.retire(0);
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn pool(&self) -> &BlockPool {
        &self.pool
    }
}

fn failed(request: &Request, reason: &str) -> Output {
    output(&request.id, OutputEvent::Failed(reason.to_owned()))
}

fn output(request_id: &str, event: OutputEvent) -> Output {
    Output {
        request_id: request_id.to_owned(),
        event,
    }
}

#[cfg(test)]
mod tests;
