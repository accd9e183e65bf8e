//! Figures of a distribution: mean, percentiles and extremes.

use serde::Serialize;

/// Figures of a distribution. Percentiles are interpolated linearly between the two nearest ranks, as in numpy and
/// vLLM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub n: u64,
    /// Mean, in ns.
    pub mean_ns: f64,
    /// Standard deviation of the sample, in ns.
    pub sd_ns: f64,
    /// Minimum, in ns.
    pub min_ns: i64,
    /// Median, in ns.
    pub p50_ns: f64,
    /// 90th percentile, in ns.
    pub p90_ns: f64,
    /// 95th percentile, in ns.
    pub p95_ns: f64,
    /// 99th percentile, in ns.
    pub p99_ns: f64,
    /// Maximum, in ns.
    pub max_ns: i64,
}

impl Quantiles {
    /// Computes the figures of values in any order.
    pub fn from_values(mut values: Vec<i64>) -> Quantiles {
        values.sort_unstable();
        Quantiles::from_sorted(&values, |ns| *ns)
    }

    /// Computes the figures of values in ascending order.
    pub(crate) fn from_sorted<T>(values: &[T], ns: impl Fn(&T) -> i64) -> Quantiles {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return Quantiles::default();
        };
        let at = |percent: usize| {
            let hundredths = percent * (values.len() - 1);
            let ranks = [hundredths / 100, hundredths.div_ceil(100)];
            let [below, above] = ranks.map(|rank| ns(&values[rank]) as f64);
            below + (above - below) * ((hundredths % 100) as f64 / 100.0)
        };
        let (n, min_ns) = (values.len() as f64, ns(first));
        let sum: i128 = values.iter().map(|value| i128::from(ns(value))).sum();
        let mean_ns = sum as f64 / n;
        // Squares of the distances from the minimum, which keep the precision of large values.
        let above_min = values
            .iter()
            .map(|value| ns(value).saturating_sub(min_ns) as f64);
        let squares = above_min.fold(0.0, |sum, above| sum + above.powi(2));
        let mean_above_min = mean_ns - min_ns as f64;
        let squares = squares - n * mean_above_min * mean_above_min;
        Quantiles {
            n: values.len() as u64,
            mean_ns,
            sd_ns: (squares.max(0.0) / (n - 1.0).max(1.0)).sqrt(),
            min_ns,
            p50_ns: at(50),
            p90_ns: at(90),
            p95_ns: at(95),
            p99_ns: at(99),
            max_ns: ns(last),
        }
    }

    /// Joins the figures of several distributions whose values are no longer known. Percentiles and deviations are
    /// means, weighted by the numbers of values.
    pub(crate) fn joined<'a>(all: impl Iterator<Item = &'a Quantiles>) -> Quantiles {
        let all: Vec<&Quantiles> = all.collect();
        if let [only] = all.as_slice() {
            return **only;
        }
        let n: u64 = all.iter().map(|figures| figures.n).sum();
        let mean = |figure: fn(&Quantiles) -> f64| {
            let sum: f64 = all
                .iter()
                .map(|figures| figure(figures) * figures.n as f64)
                .sum();
            sum / n.max(1) as f64
        };
        Quantiles {
            n,
            mean_ns: mean(|figures| figures.mean_ns),
            sd_ns: mean(|figures| figures.sd_ns),
            min_ns: all.iter().map(|figures| figures.min_ns).min().unwrap_or(0),
            p50_ns: mean(|figures| figures.p50_ns),
            p90_ns: mean(|figures| figures.p90_ns),
            p95_ns: mean(|figures| figures.p95_ns),
            p99_ns: mean(|figures| figures.p99_ns),
            max_ns: all.iter().map(|figures| figures.max_ns).max().unwrap_or(0),
        }
    }
}
