//! Confidence intervals of means and rates.

use crate::statistics::poisson;
use crate::statistics::quantiles::Quantiles;
use crate::table::{IntervalMethod, Intervals};

/// Quantiles of Student's t for 1 to 28 degrees of freedom, for two-sided intervals of 90, 95 and 99 %.
const STUDENT: [[f64; 28]; 3] = [
    [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
        1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
        1.703, 1.701,
    ],
    [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048,
    ],
    [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
        2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
        2.771, 2.763,
    ],
];

/// The same quantiles of the normal distribution.
const NORMAL: [f64; 3] = [1.644_853_626_951, 1.959_963_984_540, 2.575_829_303_549];

/// The same quantiles as NeMo Agent Toolkit rounds them.
const ROUNDED: [f64; 3] = [1.645, 1.96, 2.576];

/// Probability outside of intervals of 90, 95 and 99 %, on both sides together.
const OUTSIDE: [f64; 3] = [0.1, 0.05, 0.01];

/// Returns the quantiles of Student's t for the mean of `n` values, or `None` for fewer than two values. Beyond the
/// table, they are computed from the normal distribution (Abramowitz and Stegun, 26.7.5) to five digits.
fn student(n: u64) -> Option<[f64; 3]> {
    let freedom = n.checked_sub(1).filter(|freedom| *freedom > 0)?;
    let beyond = |z: f64| {
        let (v, square) = (freedom as f64, z * z);
        let first = z * (square + 1.0) / 4.0;
        let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
        let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
        z + (first + (second + third / v) / v) / v
    };
    let listed = usize::try_from(freedom - 1).ok()?;
    Some(match listed < STUDENT[0].len() {
        true => STUDENT.map(|quantiles| quantiles[listed]),
        false => NORMAL.map(beyond),
    })
}

/// Computes three intervals around a mean, each as its lower and upper bound. `widths` has their half-widths as
/// multiples of `error`, the standard error of the mean.
fn around(mean: f64, error: f64, widths: [f64; 3]) -> [[f64; 2]; 3] {
    widths.map(|width| [mean - width * error, mean + width * error])
}

/// Returns the confidence intervals of the mean of some values in ns, by Student's t, or `None` for fewer than two
/// values.
pub(crate) fn mean_intervals(values: &Quantiles) -> Option<Intervals> {
    let error = values.sd_ns / (values.n as f64).sqrt();
    let [p90, p95, p99] = around(values.mean_ns, error, student(values.n)?);
    Some(Intervals {
        method: IntervalMethod::StudentT,
        p90,
        p95,
        p99,
    })
}

/// Returns the confidence intervals of a rate from `n` random events, or `None` for no events.
pub(crate) fn rate_intervals(rate: f64, n: u64) -> Option<Intervals> {
    let bounds = |outside| poisson::interval(n, outside).map(|count| rate * count / n as f64);
    let [p90, p95, p99] = OUTSIDE.map(bounds);
    (n > 0).then_some(Intervals {
        method: IntervalMethod::Poisson,
        p90,
        p95,
        p99,
    })
}

/// Returns the intervals of a mean as NeMo Agent Toolkit computes them, from the population's standard deviation and
/// the normal distribution. Returns `None` for fewer than two values.
pub(crate) fn nat_mean_intervals(values: &Quantiles) -> Option<[[f64; 2]; 3]> {
    let n = values.n as f64;
    let error = values.sd_ns * ((n - 1.0) / n).sqrt() / n.sqrt();
    (values.n > 1).then(|| around(values.mean_ns, error, ROUNDED))
}

/// Returns the intervals of a rate as NeMo Agent Toolkit computes them. The error of a count is its square root, and
/// the lower bound is at least 0. Returns `None` for fewer than two events.
pub(crate) fn nat_rate_intervals(rate: f64, n: u64) -> Option<[[f64; 2]; 3]> {
    let within = || around(rate, rate / (n as f64).sqrt(), ROUNDED);
    (n > 1).then(|| within().map(|[least, most]| [least.max(0.0), most]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_published_tables() {
        // Published values of Student's t for 28, 29, 60 and 120 degrees of freedom.
        let expected = [
            (29, [1.701, 2.048, 2.763]),
            (30, [1.699, 2.045, 2.756]),
            (61, [1.671, 2.000, 2.660]),
            (121, [1.658, 1.980, 2.617]),
        ];
        for (n, widths) in expected {
            let found = student(n).unwrap().map(|width| (width * 1e3).round() / 1e3);
            assert_eq!(found, widths, "{n}");
        }
        // The standard deviation of a sample of equally many 0 and 2 is sqrt(100 / 99).
        let many = mean_intervals(&Quantiles::from_values([0, 2].repeat(50))).unwrap();
        assert_eq!(many.method, IntervalMethod::StudentT);
        let width = 1.984_2 / 99.0_f64.sqrt();
        for (found, expected) in many.p95.into_iter().zip([1.0 - width, 1.0 + width]) {
            assert!((found - expected).abs() < 1e-3, "{many:?}");
        }
        let same = mean_intervals(&Quantiles::from_values(vec![1; 29])).unwrap();
        assert_eq!(same.p99, [1.0, 1.0]);
        assert_eq!(mean_intervals(&Quantiles::from_values(vec![7])), None);
        assert_eq!(mean_intervals(&Quantiles::default()), None);
    }
}
