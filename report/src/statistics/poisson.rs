//! Confidence intervals of the Poisson distribution.

use std::f64::consts::TAU;

/// Returns the exact confidence interval ([Garwood's](https://doi.org/10.1093/biomet/28.3-4.437)) of the mean of a
/// Poisson distribution from which `n` events were counted, as its lower and upper bound. The mean is outside of the
/// interval with at most the probability `outside`, at most half of it on each side.
pub(crate) fn interval(n: u64, outside: f64) -> [f64; 2] {
    let half = outside / 2.0;
    let count = n as f64;
    let least = match n {
        0 => 0.0,
        _ => last_point([0.0, count], |mean| at_least(n, mean) < half),
    };
    let far = count + 20.0 * (count + 1.0).sqrt();
    [
        least,
        last_point([count, far], |mean| at_most(n, mean) > half),
    ]
}

/// Finds the greatest number in a range for which `holds` is true, by bisection. `holds` must be true up to some number
/// and false above it. If it is never true, the result is the start of the range.
fn last_point([mut from, mut to]: [f64; 2], holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(from, to);
        if middle <= from || middle >= to {
            break;
        }
        match holds(middle) {
            true => from = middle,
            false => to = middle,
        }
    }
    from
}

/// Returns the probability that a Poisson distribution with this mean gives `n` or more events. The mean must be at
/// most `n`.
fn at_least(n: u64, mean: f64) -> f64 {
    let ratios = (1_u64..).map(|more| mean / (n as f64 + more as f64));
    probability(n, mean) * series(ratios)
}

/// Returns the probability that a Poisson distribution with this mean gives `n` or fewer events. The mean must be at
/// least `n`.
fn at_most(n: u64, mean: f64) -> f64 {
    let ratios = (0..n).map(|fewer| (n - fewer) as f64 / mean);
    probability(n, mean) * series(ratios)
}

/// Sums up a series that starts at 1, in which each term is the previous one times the next ratio. Stops when a term no
/// longer matters.
fn series(ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

/// Returns the probability that a Poisson distribution with this mean gives exactly `n` events.
fn probability(n: u64, mean: f64) -> f64 {
    let count = n as f64;
    if n < 20 {
        let factors = (1..=n).map(|number| mean / number as f64);
        return (-mean).exp() * factors.product::<f64>();
    }
    // Stirling's series approximates the factorial.
    let square = count * count;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1_260.0 * square)) / square) / count;
    let exponent = count * (mean / count).ln() + count - mean - series;
    exponent.exp() / (TAU * count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are half of the quantiles of chi-square for 2n and 2n + 2 degrees of freedom.
    #[test]
    fn counts_have_their_exact_intervals() {
        let expected = [
            (0, 0.05, [0.0, 3.688_879]),
            (1, 0.05, [0.025_318, 5.571_643]),
            (3, 0.10, [0.817_691, 7.753_657]),
            (10, 0.05, [4.795_389, 18.390_356]),
            (10, 0.01, [3.716_922, 21.397_827]),
            (19, 0.05, [11.439_241, 29.670_854]),
            (20, 0.05, [12.216_520, 30.888_378]),
            (100, 0.05, [81.363_991, 121.626_794]),
            (1_000_000, 0.05, [998_041.0, 1_001_961.9]),
        ];
        for (n, outside, expected) in expected {
            let found = interval(n, outside);
            for (found, expected) in found.into_iter().zip(expected) {
                let off: f64 = found - expected;
                assert!(
                    off.abs() <= 2e-7 * expected.max(5.0),
                    "{n}: {found} {expected}"
                );
            }
        }
    }
}
