//! Figures of many values: mean, percentiles, extremes.

use serde::Serialize;

/// What percentiles are given.
const PERCENTS: [u64; 4] = [50, 90, 95, 99];

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

/// Takes values in ascending order, of which it is known how many there are.
#[derive(Debug, Default)]
pub(crate) struct Ascending {
    n: u64,
    taken: u64,
    sum: i128,
    /// The squares of what each is above the least.
    squares: f64,
    last: i64,
    /// The values at the rank below each percentile, and at the one above it.
    below: [i64; PERCENTS.len()],
    above: [i64; PERCENTS.len()],
    min: i64,
}

impl Quantiles {
    /// Those of values in any order.
    pub fn of(mut values: Vec<i64>) -> Quantiles {
        values.sort_unstable();
        let mut ascending = Ascending::new(values.len() as u64);
        values.into_iter().for_each(|value| ascending.take(value));
        ascending.finish()
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

impl Ascending {
    pub(crate) fn new(n: u64) -> Ascending {
        Ascending {
            n,
            ..Ascending::default()
        }
    }

    pub(crate) fn take(&mut self, value: i64) {
        let rank = self.taken;
        if rank == 0 {
            self.min = value;
        }
        for (nth, percent) in PERCENTS.iter().enumerate() {
            let at = u128::from(*percent) * u128::from(self.n.saturating_sub(1));
            if u128::from(rank) == at / 100 {
                self.below[nth] = value;
            }
            if u128::from(rank) == at.div_ceil(100) {
                self.above[nth] = value;
            }
        }
        self.taken += 1;
        self.sum += i128::from(value);
        self.squares += (value.saturating_sub(self.min) as f64).powi(2);
        self.last = value;
    }

    pub(crate) fn finish(self) -> Quantiles {
        let at = |nth: usize| {
            let hundredths = u128::from(PERCENTS[nth]) * u128::from(self.n.saturating_sub(1)) % 100;
            let (below, above) = (self.below[nth] as f64, self.above[nth] as f64);
            below + (above - below) * (hundredths as f64 / 100.0)
        };
        let n = self.taken.max(1) as f64;
        let mean_ns = self.sum as f64 / n;
        let above_min = mean_ns - self.min as f64;
        let squares = self.squares - n * above_min * above_min;
        Quantiles {
            n: self.taken,
            mean_ns,
            sd_ns: (squares.max(0.0) / (n - 1.0).max(1.0)).sqrt(),
            min_ns: self.min,
            p50_ns: at(0),
            p90_ns: at(1),
            p95_ns: at(2),
            p99_ns: at(3),
            max_ns: self.last,
        }
    }
}
