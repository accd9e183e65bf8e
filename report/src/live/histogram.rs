//! Durations counted in buckets, with their exact number and sum.

use serde::Serialize;

const MS: i64 = 1_000_000;

/// vLLM's bounds of its `time_to_first_token_seconds`.
pub(super) const TTFT_BOUNDS: [i64; 22] = [
    MS,
    5 * MS,
    10 * MS,
    20 * MS,
    40 * MS,
    60 * MS,
    80 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    750 * MS,
    1_000 * MS,
    2_500 * MS,
    5_000 * MS,
    7_500 * MS,
    10_000 * MS,
    20_000 * MS,
    40_000 * MS,
    80_000 * MS,
    160_000 * MS,
    640_000 * MS,
    2_560_000 * MS,
];

/// Those of its `time_per_output_token_seconds` and `inter_token_latency_seconds`.
pub(super) const TOKEN_BOUNDS: [i64; 19] = [
    10 * MS,
    25 * MS,
    50 * MS,
    75 * MS,
    100 * MS,
    150 * MS,
    200 * MS,
    300 * MS,
    400 * MS,
    500 * MS,
    750 * MS,
    1_000 * MS,
    2_500 * MS,
    5_000 * MS,
    7_500 * MS,
    10_000 * MS,
    20_000 * MS,
    40_000 * MS,
    80_000 * MS,
];

/// Those of `e2e_request_latency_seconds`, and of the phases of a request.
pub(super) const REQUEST_BOUNDS: [i64; 21] = [
    300 * MS,
    500 * MS,
    800 * MS,
    1_000 * MS,
    1_500 * MS,
    2_000 * MS,
    2_500 * MS,
    5_000 * MS,
    10_000 * MS,
    15_000 * MS,
    20_000 * MS,
    30_000 * MS,
    40_000 * MS,
    50_000 * MS,
    60_000 * MS,
    120_000 * MS,
    240_000 * MS,
    480_000 * MS,
    960_000 * MS,
    1_920_000 * MS,
    7_680_000 * MS,
];

/// How durations are distributed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// How many there are.
    pub n: u64,
    /// Their sum.
    pub sum_ns: i64,
    /// The upper bound of each bucket, which belongs to it.
    pub bounds_ns: &'static [i64],
    /// How many lie in each bucket, and last how many lie above all.
    pub counts: Vec<u64>,
}

impl Histogram {
    pub(super) fn new(bounds_ns: &'static [i64]) -> Histogram {
        Histogram {
            n: 0,
            sum_ns: 0,
            bounds_ns,
            counts: vec![0; bounds_ns.len() + 1],
        }
    }

    pub(super) fn take(&mut self, ns: i64) {
        let bucket = self.bounds_ns.partition_point(|bound| *bound < ns);
        self.counts[bucket] += 1;
        self.n += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    pub(super) fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// The mean; `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64)
    }

    /// A quantile as Prometheus reckons it: linear within the bucket in which it lies, and at most the last bound.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let last = *self.bounds_ns.last()?;
        if self.n == 0 {
            return None;
        }
        let rank = share * self.n as f64;
        let (mut below, mut from_ns) = (0.0, 0.0);
        for (count, bound) in self.counts.iter().zip(self.bounds_ns) {
            let count = *count as f64;
            if below + count >= rank && count > 0.0 {
                return Some(from_ns + (*bound as f64 - from_ns) * (rank - below) / count);
            }
            below += count;
            from_ns = *bound as f64;
        }
        Some(last as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::new(&TTFT_BOUNDS);
        for ns in [-5, 0, MS, MS + 1, 2_560_000 * MS, 2_560_000 * MS + 1] {
            histogram.take(ns);
        }
        assert_eq!((histogram.counts[0], histogram.counts[1]), (3, 1));
        assert_eq!((histogram.counts[21], histogram.counts[22]), (1, 1));
        assert_eq!(histogram.n, 6);
        assert_eq!(histogram.counts.iter().sum::<u64>(), 6);
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let mut histogram = Histogram::new(&TOKEN_BOUNDS);
        assert_eq!(
            (histogram.quantile_ns(0.5), histogram.mean_ns()),
            (None, None)
        );
        for _ in 0..4 {
            histogram.take(20 * MS);
        }
        assert_eq!(histogram.quantile_ns(0.5), Some(17.5e6));
        assert_eq!(histogram.mean_ns(), Some(20e6));
        histogram.take(90_000 * MS);
        assert_eq!(histogram.quantile_ns(0.99), Some(80e9));
    }
}
