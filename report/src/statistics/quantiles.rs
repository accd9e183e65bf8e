//! Figures of many values: mean, percentiles, extremes.

use serde::Serialize;

/// How values are distributed. Percentiles are linear between the two nearest ranks, as numpy's and vLLM's are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many values there are.
    pub n: u64,
    /// Their mean, in ns.
    pub mean_ns: f64,
    /// How far they scatter: the standard deviation of a sample.
    pub sd_ns: f64,
    /// The least.
    pub min_ns: i64,
    /// Half of them are at most this.
    pub p50_ns: f64,
    /// Nine in ten.
    pub p90_ns: f64,
    /// 95 in 100.
    pub p95_ns: f64,
    /// 99 in 100.
    pub p99_ns: f64,
    /// The greatest.
    pub max_ns: i64,
}

impl Quantiles {
    /// Those of values in any order.
    pub fn of(mut values: Vec<i64>) -> Quantiles {
        values.sort_unstable();
        Quantiles::of_sorted(&values, |ns| *ns)
    }

    /// Returns the figures of values in ascending order.
    pub(crate) fn of_sorted<T>(values: &[T], ns: impl Fn(&T) -> i64) -> Quantiles {
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
        // The squares of what each is above the least.
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

    /// Those of several populations, of which only the figures are known: percentiles and deviations are means of theirs, each by its number of values.
    pub(crate) fn joined<'a>(all: impl Iterator<Item = &'a Quantiles>) -> Quantiles {
        let all: Vec<&Quantiles> = all.collect();
        if let [only] = all.as_slice() {
            return **only;
        }
        let n: u64 = all.iter().map(|of| of.n).sum();
        let mean = |figure: fn(&Quantiles) -> f64| {
            let sum: f64 = all.iter().map(|of| figure(of) * of.n as f64).sum();
            sum / n.max(1) as f64
        };
        Quantiles {
            n,
            mean_ns: mean(|of| of.mean_ns),
            sd_ns: mean(|of| of.sd_ns),
            min_ns: all.iter().map(|of| of.min_ns).min().unwrap_or(0),
            p50_ns: mean(|of| of.p50_ns),
            p90_ns: mean(|of| of.p90_ns),
            p95_ns: mean(|of| of.p95_ns),
            p99_ns: mean(|of| of.p99_ns),
            max_ns: all.iter().map(|of| of.max_ns).max().unwrap_or(0),
        }
    }
}
