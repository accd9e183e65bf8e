//! The work that stands in for an accelerator's kernels: products of row-major matrices.
//!
//! Each row of a result depends on its own input row only, added up in one fixed order. So a request's tokens are the same in whatever
//! batch it runs.

/// A row-major matrix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<f32>,
}

impl Matrix {
    /// A matrix of zeros.
    pub(crate) fn zeros(rows: usize, cols: usize) -> Matrix {
        Matrix {
            rows,
            cols,
            data: vec![0.0; rows * cols],
        }
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// The product `self · right`.
    pub(crate) fn multiply(&self, right: &Matrix) -> Matrix {
        debug_assert_eq!(self.cols, right.rows);
        let mut product = Matrix::zeros(self.rows, right.cols);
        for inner in 0..self.cols {
            let right_row = right.row(inner);
            for row in 0..self.rows {
                let factor = self.data[row * self.cols + inner];
                add_scaled(product.row_mut(row), factor, right_row);
            }
        }
        product
    }

    /// Adds `other`, element by element.
    pub(crate) fn add(&mut self, other: &Matrix) {
        add_scaled(&mut self.data, 1.0, &other.data);
    }

    /// Replaces negative elements by zero.
    pub(crate) fn rectify(&mut self) {
        let values = self.data.iter_mut();
        values.for_each(|value| *value = value.max(0.0));
    }

    /// Each row scaled to unit mean square.
    pub(crate) fn normalised(&self) -> Matrix {
        let mut result = self.clone();
        for row in 0..self.rows {
            let values = result.row_mut(row);
            let mean_square = dot(values, values) / values.len().max(1) as f32;
            let scale = 1.0 / (mean_square + 1e-6).sqrt();
            values.iter_mut().for_each(|value| *value *= scale);
        }
        result
    }
}

/// Adds `factor · source` to `target`.
pub(crate) fn add_scaled(target: &mut [f32], factor: f32, source: &[f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target += factor * source;
    }
}

/// The inner product.
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let pairs = left.iter().zip(right);
    pairs.map(|(left, right)| left * right).sum()
}

/// Attention of one query over the keys and values so far: `keys` and `values` have as many rows, each as wide as the query.
pub(crate) fn attend(query: &[f32], keys: &[f32], values: &[f32], out: &mut [f32]) {
    let width = query.len().max(1);
    let scale = 1.0 / (width as f32).sqrt();
    let keys = keys.chunks_exact(width);
    let mut weights: Vec<f32> = keys.map(|key| dot(query, key) * scale).collect();
    let highest = weights.iter().copied().fold(f32::MIN, f32::max);
    let scaled = weights.iter_mut();
    scaled.for_each(|weight| *weight = (*weight - highest).exp());
    let total: f32 = weights.iter().sum();
    for (weight, value) in weights.iter().zip(values.chunks_exact(width)) {
        add_scaled(out, weight / total, value);
    }
}

/// A seeded table of numbers in -0.5..0.5 that can be read at any place: the weights come from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// The table for part `part` of this one.
    pub(crate) fn part(self, part: u64) -> Noise {
        Noise(mix(self.0 ^ mix(part)))
    }

    /// The number at `index`.
    pub(crate) fn at(self, index: usize) -> f32 {
        let bits = mix(self.0.wrapping_add(index as u64)) >> 40;
        bits as f32 / (1u64 << 24) as f32 - 0.5
    }

    /// A whole number in `0..bound` for `index`; 0 if the bound is 0.
    pub(crate) fn below(self, index: u64, bound: usize) -> usize {
        let bits = mix(self.0.wrapping_add(index)) >> 11;
        let bits = usize::try_from(bits).unwrap_or(0);
        bits.checked_rem(bound).unwrap_or(0)
    }
}

/// The finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, cols: usize, data: &[f32]) -> Matrix {
        Matrix {
            rows,
            cols,
            data: data.to_vec(),
        }
    }

    #[test]
    fn a_product_is_the_textbook_one() {
        let left = matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let right = matrix(3, 2, &[7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(
            left.multiply(&right),
            matrix(2, 2, &[58.0, 64.0, 139.0, 154.0])
        );
    }

    #[test]
    fn attention_is_a_weighted_mean_of_the_values() {
        let mut out = [0.0; 2];
        attend(
            &[0.0, 0.0],
            &[1.0, 2.0, 3.0, 4.0],
            &[2.0, 4.0, 4.0, 8.0],
            &mut out,
        );
        assert_eq!(out, [3.0, 6.0], "equal weights");
        let mut out = [0.0; 2];
        attend(
            &[100.0, 0.0],
            &[0.0, 0.0, 1.0, 0.0],
            &[2.0, 4.0, 4.0, 8.0],
            &mut out,
        );
        assert!(
            (out[0] - 4.0).abs() < 1e-3 && (out[1] - 8.0).abs() < 1e-3,
            "{out:?}"
        );
    }

    #[test]
    fn normalised_rows_have_unit_mean_square() {
        let rows = matrix(2, 2, &[3.0, 4.0, 0.1, 0.0]).normalised();
        for row in 0..2 {
            assert!((dot(rows.row(row), rows.row(row)) / 2.0 - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn noise_is_spread_over_its_range_and_differs_by_seed() {
        let mean = (0..10_000).map(|index| Noise(1).at(index)).sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((0..10_000).all(|index| (-0.5..0.5).contains(&Noise(1).at(index))));
        assert_ne!(Noise(1).part(0).at(5), Noise(1).part(1).at(5));
        assert!((0..100).all(|index| Noise(3).below(index, 7) < 7));
        assert_eq!(Noise(3).below(1, 0), 0);
    }
}
