//! Quantiles.

/// Returns the quantile `share` of `values`, 0 if there are no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(rank(sorted.len(), share))
        .copied()
        .unwrap_or(0.0)
}

/// Returns the median.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the index of the quantile in `count` sorted values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 <= share * count <= count"
)]
pub fn rank(count: usize, share: f64) -> usize {
    let index = (count as f64 * share) as usize;
    index.min(count.saturating_sub(1))
}
