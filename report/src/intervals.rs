//! Where the mean of a population lies, by what is known of a sample.

use crate::quantiles::Quantiles;
use crate::table::confidence::{IntervalMethod, Intervals};

/// So many values scatter as normal ones do, as far as their mean goes.
const MANY: u64 = 30;

/// The quantiles of Student's t for 1 to 28 degrees of freedom: what lies within them on both sides is 90, 95 and 99 %.
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

/// Those of the normal distribution, as NeMo Agent Toolkit rounds them.
const NORMAL: [f64; 3] = [1.645, 1.96, 2.576];

/// How many standard errors lie on each side of a mean of `n` values, with 90, 95 and 99 %.
fn widths(n: u64) -> Option<(IntervalMethod, [f64; 3])> {
    if n >= MANY {
        return Some((IntervalMethod::Normal, NORMAL));
    }
    let freedom = usize::try_from(n.checked_sub(2)?).ok()?;
    Some((
        IntervalMethod::StudentT,
        STUDENT.map(|quantiles| quantiles[freedom]),
    ))
}

/// Intervals of so many standard errors around a mean.
fn around(mean: f64, error: f64, method: IntervalMethod, widths: [f64; 3]) -> Intervals {
    let [p90, p95, p99] = widths.map(|width| [mean - width * error, mean + width * error]);
    Intervals {
        method,
        p90,
        p95,
        p99,
    }
}

/// Where the mean of the population of these values lies; `None` of fewer than two.
pub(crate) fn of_mean(values: &Quantiles) -> Option<Intervals> {
    let (method, widths) = widths(values.n)?;
    let n = values.n as f64;
    let sd = match method {
        IntervalMethod::StudentT => values.sd_ns,
        IntervalMethod::Normal => values.sd_ns * ((n - 1.0) / n).sqrt(),
    };
    Some(around(values.mean_ns, sd / n.sqrt(), method, widths))
}

/// Where a rate lies of which `n` events tell, which came by chance: such a count has its square root for an error. It is never below nothing.
pub(crate) fn of_rate(rate: f64, n: u64) -> Option<Intervals> {
    let (method, widths) = widths(n)?;
    let found = around(rate, rate / (n as f64).sqrt(), method, widths);
    let within = |[from, to]: [f64; 2]| [from.max(0.0), to];
    Some(Intervals {
        p90: within(found.p90),
        p95: within(found.p95),
        p99: within(found.p99),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: [f64; 2], expected: [f64; 2]) -> bool {
        let is_near = |(found, expected): (f64, f64)| (found - expected).abs() < 1e-3;
        found.into_iter().zip(expected).all(is_near)
    }

    #[test]
    fn few_values_have_a_wide_mean() {
        let few = of_mean(&Quantiles::of(vec![10, 20, 30, 40])).unwrap();
        // t of three degrees of freedom · sqrt(500 / 3) / 2
        assert_eq!(few.method, IntervalMethod::StudentT);
        assert!(near(few.p90, [9.811_5, 40.188_5]), "{few:?}");
        assert!(near(few.p95, [4.460_4, 45.539_6]), "{few:?}");
        assert!(near(few.p99, [-12.703_4, 62.703_4]), "{few:?}");
        assert_eq!(of_mean(&Quantiles::of(vec![7])), None);
        assert_eq!(of_mean(&Quantiles::default()), None);
        let same = of_mean(&Quantiles::of(vec![1; 29])).unwrap();
        assert!(near(same.p99, [1.0, 1.0]), "{same:?}");
    }

    #[test]
    fn many_values_are_as_normal_ones() {
        // The deviation of 0 and 2 in equal numbers is 1, and its error of a hundred 0.1.
        let many = of_mean(&Quantiles::of([0, 2].repeat(50))).unwrap();
        assert_eq!(many.method, IntervalMethod::Normal);
        assert!(near(many.p90, [0.835_5, 1.164_5]), "{many:?}");
        assert!(near(many.p95, [0.804, 1.196]) && near(many.p99, [0.742_4, 1.257_6]));
    }

    /// What NAT 1.9.0 gives for three run times of 10, 10 and 6.5 s, and for three requests in 12 s.
    #[test]
    fn the_normal_ones_are_those_of_nat() {
        let times = Quantiles::of(vec![10_000, 10_000, 6_500]);
        let error = times.sd_ns * (2.0_f64 / 3.0).sqrt() / 3.0_f64.sqrt();
        let found = around(times.mean_ns, error, IntervalMethod::Normal, NORMAL);
        assert!(near(found.p90, [7_266.340_3, 10_400.326_4]), "{found:?}");
        assert!(near(found.p95, [6_966.277_8, 10_700.388_8]), "{found:?}");
        assert!(near(found.p99, [6_379.488_9, 11_287.177_7]), "{found:?}");
        let error = 0.25 / 3.0_f64.sqrt();
        let found = around(0.25, error, IntervalMethod::Normal, NORMAL);
        assert!(near(found.p90, [0.012_565, 0.487_435]), "{found:?}");
    }

    #[test]
    fn a_rate_is_never_below_nothing() {
        let rate = of_rate(0.25, 3).unwrap();
        assert!(near(rate.p90, [0.0, 0.25 + 2.92 * 0.25 / 3.0_f64.sqrt()]));
        let rate = of_rate(10.0, 100).unwrap();
        assert!(near(rate.p95, [8.04, 11.96]), "{rate:?}");
        assert_eq!(of_rate(1.0, 1), None);
    }
}
