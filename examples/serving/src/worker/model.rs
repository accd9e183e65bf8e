//! A small transformer with seeded weights, cut into shards: a worker has some columns of each projection and some of the vocabulary.
//!
//! Real tensor parallelism adds the shards' results up after each projection. Here each shard goes on with its own, which keeps the
//! amount and the shape of the work; the engine core joins the shards where they choose the next token.

use std::collections::HashMap;
use std::rc::Rc;

use std::io;

use crate::kernels::{Matrix, Noise, attend};
use crate::protocol::{Sample, Sequence, Token};
use crate::tokenizer::VOCABULARY;
use crate::worker::device::Device;
use crate::worker::weights::{self, HIDDEN, Layer, Shard};

const LAYERS: usize = 6;

/// Keys and values of one request in one layer: a row for each token.
#[derive(Debug, Default)]
struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// A shard of the model and the caches of the requests that run on it.
#[derive(Debug)]
pub(crate) struct Model {
    device: Rc<Device>,
    shard: Shard,
    /// Columns of attention that this shard has.
    width: usize,
    embedding: Noise,
    positions: Noise,
    layers: Vec<Layer>,
    vocabulary: Matrix,
    caches: HashMap<String, [Cache; LAYERS]>,
}

impl Model {
    /// Makes the weights of `shard`: the same for the same seed, and each column the same whatever shard it is in.
    pub(crate) fn new(seed: u64, shard: Shard, device: Rc<Device>) -> Model {
        let noise = Noise(seed);
        let width = shard.of(HIDDEN).len();
        Model {
            device,
            shard,
            width,
            embedding: noise.part(1),
            positions: noise.part(2),
            layers: (100..)
                .take(LAYERS)
                .map(|part| Layer::new(noise.part(part), shard))
                .collect(),
            vocabulary: weights::vocabulary(noise.part(3), shard),
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

    /// Runs the new tokens of each sequence and picks the shard's best next token for each.
    ///
    /// # Errors
    ///
    /// If the device refuses a kernel.
    pub(crate) fn run(&mut self, sequences: &[Sequence]) -> io::Result<Vec<Sample>> {
        let mut state = self.embed(sequences);
        for layer in 0..LAYERS {
            let attention = self.attention(layer, &state, sequences)?;
            state.add(&attention);
            let mlp = self.layers[layer].mlp(&self.device, &state.normalised())?;
            state.add(&mlp);
        }
        let samples = self.sample(&state, sequences)?;
        self.device.synchronize()?;
        Ok(samples)
    }

    /// One row for each token of each sequence.
    fn embed(&self, sequences: &[Sequence]) -> Matrix {
        let rows = sequences.iter().map(|sequence| sequence.tokens.len()).sum();
        let mut state = Matrix::zeros(rows, HIDDEN);
        let tokens = sequences
            .iter()
            .flat_map(|sequence| (sequence.position..).zip(&sequence.tokens));
        for (row, (position, token)) in tokens.enumerate() {
            for (column, value) in state.row_mut(row).iter_mut().enumerate() {
                let place = position * HIDDEN + column;
                *value = self.embedding.at(*token as usize * HIDDEN + column)
                    + self.positions.at(place) * 0.5;
            }
        }
        state
    }

    fn attention(
        &mut self,
        layer: usize,
        state: &Matrix,
        sequences: &[Sequence],
    ) -> io::Result<Matrix> {
        let (device, weights) = (&self.device, &self.layers[layer]);
        let qkv = device.multiply("qkv_proj", &state.normalised(), &weights.qkv)?;
        let mut attended = Matrix::zeros(state.rows, self.width);
        let context = |sequence: &Sequence| sequence.position + sequence.tokens.len();
        let context = sequences.iter().map(context).max();
        let sizes = [state.rows, context.unwrap_or(0), self.width];
        device.run("paged_attention", sizes, || {
            let mut row = 0;
            for sequence in sequences {
                let caches = self.caches.entry(sequence.request_id.clone()).or_default();
                for _ in &sequence.tokens {
                    caches[layer].attend(qkv.row(row), attended.row_mut(row));
                    row += 1;
                }
            }
        })?;
        device.multiply("o_proj", &attended, &weights.out)
    }

    /// The best token of this shard's part of the vocabulary after the last token of each sequence.
    fn sample(&self, state: &Matrix, sequences: &[Sequence]) -> io::Result<Vec<Sample>> {
        let mut last = Matrix::zeros(sequences.len(), HIDDEN);
        let mut end = 0;
        for (row, sequence) in sequences.iter().enumerate() {
            end += sequence.tokens.len();
            last.row_mut(row).copy_from_slice(state.row(end - 1));
        }
        let logits = self
            .device
            .multiply("lm_head", &last.normalised(), &self.vocabulary)?;
        let first = self.shard.of(VOCABULARY as usize).start;
        let best = |row| highest(logits.row(row));
        let sample = |(row, sequence): (usize, &Sequence)| {
            let (column, score) = best(row);
            let token = Token::try_from(first + column).unwrap_or(Token::MAX);
            Sample {
                request_id: sequence.request_id.clone(),
                token,
                score,
            }
        };
        Ok(sequences.iter().enumerate().map(sample).collect())
    }
}

impl Layer {
    fn mlp(&self, device: &Device, state: &Matrix) -> io::Result<Matrix> {
        let mut inner = device.multiply("mlp_up", state, &self.up)?;
        inner.rectify();
        device.multiply("mlp_down", &inner, &self.down)
    }
}

impl Cache {
    /// Adds the key and value in `qkv` and attends with its query over all so far.
    fn attend(&mut self, qkv: &[f32], out: &mut [f32]) {
        let width = out.len();
        self.keys.extend_from_slice(&qkv[width..2 * width]);
        self.values.extend_from_slice(&qkv[2 * width..]);
        attend(&qkv[..width], &self.keys, &self.values, out);
    }
}

/// Place and value of the highest number, the first if several are.
fn highest(values: &[f32]) -> (usize, f32) {
    let better = |best: (usize, f32), next: (usize, f32)| if next.1 > best.1 { next } else { best };
    let values = values.iter().copied().enumerate();
    values.fold((0, f32::MIN), better)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Shard = Shard { rank: 0, world: 1 };

    fn model(shard: Shard) -> Model {
        Model::new(1, shard, Rc::new(Device::new(None, false)))
    }

    fn sequence(id: &str, position: usize, tokens: &[Token]) -> Sequence {
        Sequence {
            request_id: id.to_owned(),
            position,
            tokens: tokens.to_vec(),
        }
    }

    #[test]
    fn tokens_depend_on_neither_the_batch_nor_a_second_prefill() {
        let shard = Shard { rank: 1, world: 4 };
        let mut stepwise = model(shard);
        let first = [sequence("a", 0, &[5, 6, 7]), sequence("b", 0, &[9])];
        stepwise.run(&first).unwrap();
        let second = [sequence("b", 1, &[4]), sequence("a", 3, &[8])];
        let stepwise = stepwise.run(&second).unwrap();
        let mut at_once = model(shard);
        let at_once = at_once.run(&[sequence("a", 0, &[5, 6, 7, 8])]).unwrap();
        assert_eq!(stepwise[1], at_once[0]);
    }

    #[test]
    fn the_next_token_depends_on_the_whole_context() {
        let mut model = model(WHOLE);
        let texts = [[1, 2, 3], [4, 2, 3], [1, 5, 3], [1, 2, 6]];
        let score = |(n, text): (usize, &[Token; 3])| {
            model.run(&[sequence(&n.to_string(), 0, text)]).unwrap()[0].score
        };
        let scores: Vec<f32> = texts.iter().enumerate().map(score).collect();
        assert!(
            scores[1..].iter().all(|other| *other != scores[0]),
            "{scores:?}"
        );
    }
}
