//! A small transformer as it appears to a profiler. Its kernels are launched with realistic sizes and durations, and the next token is a seeded pseudo-random number
//! that depends on the whole context.
//!
//! The model is divided into shards: a worker has some columns of each projection and a part of the vocabulary.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use crate::noise::Noise;
use crate::protocol::{Sample, Sequence, Token};
use crate::tokenizer::VOCABULARY;
use crate::worker::device::Device;

const LAYERS: usize = 6;
/// Width of a token's hidden state.
const HIDDEN: usize = 768;
/// Width of a token's state inside the MLP of a layer.
const INNER: usize = 4 * HIDDEN;

/// The part of the model for worker `rank` of `world`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) rank: usize,
    pub(super) world: usize,
}

impl Shard {
    /// Returns this shard's part of `0..total`. The parts of all shards together cover the whole range.
    fn range(self, total: usize) -> Range<usize> {
        let world = self.world.max(1);
        total * self.rank / world..total * (self.rank + 1) / world
    }
}

/// A shard of the model and the caches of the requests that run on it.
#[derive(Debug)]
pub(crate) struct Model {
    device: Rc<Device>,
    shard: Shard,
    seed: u64,
    /// The state of each request, which depends on all its tokens so far.
    caches: HashMap<String, Noise>,
}

impl Model {
    pub(crate) fn new(seed: u64, shard: Shard, device: Rc<Device>) -> Model {
        Model {
            device,
            shard,
            seed,
            caches: HashMap::new(),
        }
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    /// Removes a request's cache.
    pub(crate) fn release(&mut self, request_id: &str) {
        self.caches.remove(request_id);
    }

    /// Runs the new tokens of each sequence and returns the next token for each.
    ///
    /// # Errors
    ///
    /// If the device refuses a kernel.
    pub(crate) fn run(&mut self, sequences: &[Sequence]) -> io::Result<Vec<Sample>> {
        let rows = sequences.iter().map(|sequence| sequence.tokens.len()).sum();
        let ends = sequences.iter().map(Sequence::end);
        let context = ends.max().unwrap_or(0);
        let (width, inner) = (
            self.shard.range(HIDDEN).len(),
            self.shard.range(INNER).len(),
        );
        for _ in 0..LAYERS {
            self.device.run("qkv_proj", [rows, 3 * width, HIDDEN])?;
            self.device.run("paged_attention", [rows, context, width])?;
            self.device.run("o_proj", [rows, HIDDEN, width])?;
            self.device.run("mlp_up", [rows, inner, HIDDEN])?;
            self.device.run("mlp_down", [rows, HIDDEN, inner])?;
        }
        let vocabulary = self.shard.range(VOCABULARY as usize).len();
        let sizes = [sequences.len(), vocabulary, HIDDEN];
        self.device.run("lm_head", sizes)?;
        self.device.synchronize()?;
        Ok(sequences
            .iter()
            .map(|sequence| self.sample(sequence))
            .collect())
    }

    /// Adds the tokens of a sequence to its cache and chooses the next token.
    fn sample(&mut self, sequence: &Sequence) -> Sample {
        let request_id = sequence.request_id.clone();
        let cache = self.caches.entry(request_id.clone());
        let cache = cache.or_insert(Noise(self.seed));
        for token in &sequence.tokens {
            *cache = cache.part((*token).into());
        }
        let token = cache.below(0, VOCABULARY as usize);
        Sample {
            request_id,
            token: Token::try_from(token).unwrap_or(0),
        }
    }
}
