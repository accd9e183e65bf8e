//! A small transformer, as far as a profiler sees it: its kernels are launched with their sizes and take their time, and the next token is a seeded number that
//! depends on the whole context.
//!
//! It is cut into shards: a worker has some columns of each projection and some of the vocabulary.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use crate::noise::Noise;
use crate::protocol::{Sample, Sequence, Token};
use crate::tokenizer::VOCABULARY;
use crate::worker::device::Device;

const LAYERS: usize = 6;
/// Width of the state of one token, and of the one inside a layer.
const HIDDEN: usize = 768;
const INNER: usize = 4 * HIDDEN;

/// Which part of the model: the `rank`-th of `world`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) rank: usize,
    pub(super) world: usize,
}

impl Shard {
    /// This shard's part of `0..total`; all shards' parts together are the whole.
    fn of(self, total: usize) -> Range<usize> {
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
    /// All tokens of each request so far, as one number.
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

    /// Forgets a request's cache.
    pub(crate) fn release(&mut self, request_id: &str) {
        self.caches.remove(request_id);
    }

    /// Runs the new tokens of each sequence and picks the next token for each.
    ///
    /// # Errors
    ///
    /// If the device refuses a kernel.
    pub(crate) fn run(&mut self, sequences: &[Sequence]) -> io::Result<Vec<Sample>> {
        let rows = sequences.iter().map(|sequence| sequence.tokens.len()).sum();
        let ends = sequences.iter().map(Sequence::end);
        let context = ends.max().unwrap_or(0);
        let (width, inner) = (self.shard.of(HIDDEN).len(), self.shard.of(INNER).len());
        for _ in 0..LAYERS {
            self.device.run("qkv_proj", [rows, 3 * width, HIDDEN])?;
            self.device.run("paged_attention", [rows, context, width])?;
            self.device.run("o_proj", [rows, HIDDEN, width])?;
            self.device.run("mlp_up", [rows, inner, HIDDEN])?;
            self.device.run("mlp_down", [rows, HIDDEN, inner])?;
        }
        let words = self.shard.of(VOCABULARY as usize).len();
        let sizes = [sequences.len(), words, HIDDEN];
        self.device.run("lm_head", sizes)?;
        self.device.synchronize()?;
        Ok(sequences.iter().map(|one| self.sample(one)).collect())
    }

    /// Takes the tokens of a sequence into its cache, and chooses the next one.
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
