//! Distributions of durations in bounded memory: exact counts at Prometheus' bounds, and a sketch for quantiles.

use serde::{Serialize, Serializer};
use sketches_ddsketch::{Config, DDSketch};

/// Maximum relative error of a value that the sketch returns.
const ERROR: f64 = 0.005;
/// Maximum number of bins. It suffices for all durations of at least 1 ns, so that the sketch never merges two bins.
const MOST_BINS: u32 = 35 * 128;

const MS: i64 = 1_000_000;

/// Converts bounds from ms to ns.
const fn ns<const N: usize>(mut bounds: [i64; N]) -> [i64; N] {
    let mut nth = 0;
    while nth < N {
        bounds[nth] *= MS;
        nth += 1;
    }
    bounds
}

/// vLLM's bounds for `time_to_first_token_seconds`.
pub(super) const TTFT_BOUNDS: [i64; 22] = ns([
    1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000, 20_000,
    40_000, 80_000, 160_000, 640_000, 2_560_000,
]);

/// vLLM's bounds for `time_per_output_token_seconds` and `inter_token_latency_seconds`.
pub(super) const TOKEN_BOUNDS: [i64; 19] = ns([
    10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000, 20_000,
    40_000, 80_000,
]);

/// vLLM's bounds for `e2e_request_latency_seconds` and for the phases of a request.
pub(super) const REQUEST_BOUNDS: [i64; 21] = ns([
    300, 500, 800, 1_000, 1_500, 2_000, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000,
    50_000, 60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 7_680_000,
]);

/// A distribution of durations.
#[derive(Clone)]
pub struct Histogram {
    /// Number of durations.
    pub n: u64,
    /// Sum of the durations, in ns.
    pub sum_ns: i64,
    /// Upper bound of each bucket, in ns. A duration equal to a bound belongs to the bucket below it.
    pub bounds_ns: &'static [i64],
    /// Exact number of durations in each bucket. The last count is for durations above all bounds.
    pub counts: Vec<u64>,
    sketch: DDSketch,
}

/// Figures of a distribution. Quantiles are interpolated linearly between the two nearest ranks, as in a report, and
/// are within 0.5 % of the exact values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LiveQuantiles {
    /// Number of durations.
    pub n: u64,
    /// Mean in ns, or `None` if there are no durations.
    pub mean_ns: Option<f64>,
    /// Median in ns.
    pub p50_ns: Option<f64>,
    /// 90th percentile in ns.
    pub p90_ns: Option<f64>,
    /// 99th percentile in ns.
    pub p99_ns: Option<f64>,
}

/// JSON form of a [`Histogram`].
#[derive(Serialize)]
struct HistogramJson<'a> {
    #[serde(flatten)]
    quantiles: LiveQuantiles,
    sum_ns: i64,
    bounds_ns: &'a [i64],
    counts: &'a [u64],
}

impl Histogram {
    pub(super) fn new(bounds_ns: &'static [i64]) -> Histogram {
        Histogram {
            n: 0,
            sum_ns: 0,
            bounds_ns,
            counts: vec![0; bounds_ns.len() + 1],
            sketch: DDSketch::new(Config::new(ERROR, MOST_BINS, 0.5)),
        }
    }

    pub(super) fn add_value(&mut self, ns: i64) {
        self.counts[bucket(self.bounds_ns, ns)] += 1;
        self.n += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.sketch.add(ns as f64);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        let merged = self.sketch.merge(&other.sketch);
        debug_assert!(merged.is_ok(), "all sketches have one configuration");
    }

    /// Returns the mean, or `None` if there are no durations.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64)
    }

    /// Returns a quantile in ns, interpolated linearly between the two nearest ranks as in a report. `share` is 0.5 for
    /// the median. Returns `None` if there are no durations.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let rank = share * self.n.checked_sub(1)? as f64;
        let (below, above) = (self.at_rank(rank.floor())?, self.at_rank(rank.ceil())?);
        Some(below + (above - below) * rank.fract())
    }

    /// Returns the duration in ns at a whole rank counted from 0, within the error of the sketch. The minimum and the
    /// maximum are exact. Returns `None` if there are no durations.
    fn at_rank(&self, rank: f64) -> Option<f64> {
        let last = self.n.checked_sub(1)? as f64;
        let (least, greatest) = (self.sketch.min()?, self.sketch.max()?);
        match rank {
            _ if rank <= 0.0 => Some(least),
            _ if rank >= last => Some(greatest),
            // The sketch rounds ranks down. Half a rank more makes sure that it returns this rank.
            _ => {
                let found = self.sketch.quantile((rank + 0.5) / last);
                Some(found.ok()??.clamp(least, greatest))
            }
        }
    }

    /// Returns the number, the mean and some quantiles of the durations, as live views show them.
    pub fn quantiles(&self) -> LiveQuantiles {
        LiveQuantiles {
            n: self.n,
            mean_ns: self.mean_ns(),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
        }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.quantiles().fmt(formatter)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = HistogramJson {
            quantiles: self.quantiles(),
            sum_ns: self.sum_ns,
            bounds_ns: self.bounds_ns,
            counts: &self.counts,
        };
        json.serialize(serializer)
    }
}

/// Returns the index of the bucket for a duration.
fn bucket(bounds_ns: &[i64], ns: i64) -> usize {
    bounds_ns.partition_point(|bound| *bound < ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::quantiles::Quantiles;

    /// Samples whose quantiles differ much from interpolation within a bucket.
    fn samples() -> Vec<Vec<i64>> {
        let mut random = fastrand::Rng::with_seed(47);
        let mut spread = || -> Vec<i64> {
            let mut power = || 10_f64.powf(13.0 * random.f64());
            #[expect(clippy::cast_possible_truncation, reason = "at most 10^13")]
            (0..5_000).map(|_| power() as i64).collect()
        };
        vec![
            // A queue that never takes longer than 230 µs, while the first bound is 300 ms.
            (0..64).map(|nth| 200_000 + nth * 476).collect(),
            vec![2_650 * MS; 40],
            vec![1, 2, 3, 400 * MS],
            vec![0; 9],
            vec![7],
            spread(),
            [vec![MS; 98], vec![900_000 * MS; 2]].concat(),
        ]
    }

    #[test]
    fn quantiles_equal_those_of_a_report() {
        for sample in samples() {
            let mut histogram = Histogram::new(&REQUEST_BOUNDS);
            sample.iter().for_each(|ns| histogram.add_value(*ns));
            let exact = Quantiles::from_values(sample);
            let live = histogram.quantiles();
            assert_eq!(live.n, exact.n);
            for (live, exact) in [
                (live.mean_ns, exact.mean_ns),
                (live.p50_ns, exact.p50_ns),
                (live.p90_ns, exact.p90_ns),
                (live.p99_ns, exact.p99_ns),
            ] {
                let off = (live.unwrap() - exact).abs();
                assert!(off <= 1.001 * ERROR * exact.abs(), "{live:?} {exact}");
            }
        }
        let nothing = Histogram::new(&TTFT_BOUNDS).quantiles();
        assert_eq!((nothing.mean_ns, nothing.p50_ns), (None, None));
    }
}
