//! The weights: seeded numbers, cut into shards.
//!
//! A column or row is the same whatever shard it is in, so all shards together are the whole model.

use std::ops::Range;

use crate::kernels::{Matrix, Noise};
use crate::tokenizer::VOCABULARY;

/// Width of the state of one token.
pub(super) const HIDDEN: usize = 768;
const MLP_FACTOR: usize = 4;

/// Which part of the model: the `rank`-th of `world`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) rank: usize,
    pub(super) world: usize,
}

impl Shard {
    /// This shard's part of `0..total`; all shards' parts together are the whole.
    pub(super) fn of(self, total: usize) -> Range<usize> {
        let world = self.world.max(1);
        total * self.rank / world..total * (self.rank + 1) / world
    }
}

/// The weights of one layer's shard.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) qkv: Matrix,
    pub(super) out: Matrix,
    pub(super) up: Matrix,
    pub(super) down: Matrix,
}

impl Layer {
    /// The weights of `shard` from one layer's table.
    pub(super) fn new(noise: Noise, shard: Shard) -> Layer {
        let (attention, mlp) = (shard.of(HIDDEN), shard.of(HIDDEN * MLP_FACTOR));
        let thirds =
            (0..3).flat_map(|third| attention.clone().map(move |column| third * HIDDEN + column));
        let thirds: Vec<usize> = thirds.collect();
        Layer {
            qkv: gather(noise.part(0), 3 * HIDDEN, HIDDEN, &thirds),
            out: rows(noise.part(1), &attention, HIDDEN),
            up: columns(noise.part(2), HIDDEN, HIDDEN * MLP_FACTOR, &mlp),
            down: rows(noise.part(3), &mlp, HIDDEN),
        }
    }
}

/// The weights that turn the state into the logits of the shard's tokens.
pub(super) fn vocabulary(noise: Noise, shard: Shard) -> Matrix {
    let total = VOCABULARY as usize;
    columns(noise, HIDDEN, total, &shard.of(total))
}

/// The given columns of a seeded matrix of `height` rows.
fn columns(noise: Noise, height: usize, total: usize, columns: &Range<usize>) -> Matrix {
    gather(noise, total, height, &columns.clone().collect::<Vec<_>>())
}

/// The given columns of a seeded matrix of `height` rows and `total` columns.
fn gather(noise: Noise, total: usize, height: usize, columns: &[usize]) -> Matrix {
    let elements =
        (0..height).flat_map(|row| columns.iter().map(move |column| row * total + column));
    scaled(noise, [height, columns.len()], elements)
}

/// The given rows of a seeded matrix of `width` columns.
fn rows(noise: Noise, rows: &Range<usize>, width: usize) -> Matrix {
    let elements = rows.start * width..rows.end * width;
    scaled(noise, [rows.len(), width], elements)
}

/// A matrix of these elements of the noise. The more rows are summed up in a product, the smaller they are.
fn scaled(noise: Noise, [rows, cols]: [usize; 2], elements: impl Iterator<Item = usize>) -> Matrix {
    let scale = 3.0 / (rows.max(1) as f32).sqrt();
    let data = elements.map(|place| noise.at(place) * scale).collect();
    Matrix { rows, cols, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cut_without_gap_or_overlap() {
        for world in 1..9 {
            let parts: Vec<usize> = (0..world)
                .flat_map(|rank| Shard { rank, world }.of(512))
                .collect();
            assert_eq!(parts, (0..512).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_cut_matrix_has_the_columns_of_the_whole() {
        let whole = columns(Noise(5), 3, 8, &(0..8));
        let part = columns(Noise(5), 3, 8, &(2..5));
        for row in 0..3 {
            assert_eq!(part.row(row), &whole.row(row)[2..5]);
        }
    }
}
