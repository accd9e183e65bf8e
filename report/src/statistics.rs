//! Tests whether two samples differ.

pub(crate) mod poisson;
pub(crate) mod quantiles;

/// Maximum number of bootstrap resamples.
const RESAMPLES: usize = 1_000;
/// Maximum number of values that all resamples together may draw. Larger samples get fewer resamples.
const DRAWS: usize = 20_000_000;
const LEAST_RESAMPLES: usize = 100;

/// Returns the probability that two samples of one population differ as much in rank. It is the two-sided Mann-Whitney
/// U test, by the normal approximation with correction for ties and continuity. Returns `None` if a sample has fewer
/// than eight values, or if all values are equal.
pub fn mann_whitney(one: &[i64], other: &[i64]) -> Option<f64> {
    rank_test(one, other, [1.0, 1.0])
}

/// Returns the probability of [`mann_whitney`] for values in the order in which they were observed, such as the times
/// of requests that waited for each other. Neighbouring values are then similar, so two samples of one population
/// differ more than independent values would, and the test allows for that. Returns `None` in the same cases.
pub(crate) fn mann_whitney_in_order(one: &[i64], other: &[i64]) -> Option<f64> {
    rank_test(one, other, [one, other].map(variance_inflation))
}

/// Returns the factor by which dependence between neighbours increases the variance of a mean rank. It is computed from
/// the sum of the autocorrelations, up to the first one that chance explains. A steady trend does not count as
/// dependence, because requests that arrive at once wait one after the other.
fn variance_inflation(values: &[i64]) -> f64 {
    /// Maximum number of autocorrelations.
    const LAGS: usize = 1_000;
    /// Minimum share of the variance that a trend must explain to be removed.
    const TREND: f64 = 0.9;
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut from_mean = ranks(values);
    from_mean.iter_mut().for_each(|rank| *rank -= mean);
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    let times: Vec<f64> = (0..values.len()).map(|nth| nth as f64 - mean).collect();
    let variance = product(&from_mean, &from_mean);
    let slope = product(&from_mean, &times) / product(&times, &times);
    if slope * slope * product(&times, &times) > TREND * variance {
        let both = from_mean.iter_mut().zip(&times);
        both.for_each(|(rank, time)| *rank -= slope * time);
    }
    let variance = product(&from_mean, &from_mean);
    let by_chance = 1.0 / (values.len() as f64).sqrt();
    let lags = 1..(values.len() / 4).min(LAGS);
    let correlations = lags.map(|lag| product(&from_mean, &from_mean[lag..]) / variance);
    let dependent = correlations.take_while(|correlation| *correlation > by_chance);
    1.0 + 2.0 * dependent.sum::<f64>()
}

/// Returns the rank of each value, counted from 0. Equal values share the mean of their ranks.
fn ranks(values: &[i64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|nth| values[*nth]);
    let (mut ranks, mut first) = (vec![0.0; values.len()], 0.0);
    for same in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let n = same.len() as f64;
        for nth in same {
            ranks[*nth] = first + (n - 1.0) / 2.0;
        }
        first += n;
    }
    ranks
}

/// Runs the two-sided Mann-Whitney U test on two samples, and returns its probability, or `None` if a sample has fewer
/// than eight values or if all values are equal. `inflations` has a factor for each sample by which dependence
/// increases the variance of U. The mean of both factors applies. If the samples hardly overlap, the lower one applies,
/// because their dependence differs too.
fn rank_test(one: &[i64], other: &[i64], inflations: [f64; 2]) -> Option<f64> {
    const LEAST: usize = 8;
    /// Minimum share of pairs in which the value of the same sample is greater, for the samples to be apart.
    const APART: f64 = 0.95;
    if one.len() < LEAST || other.len() < LEAST {
        return None;
    }
    let labelled = |values: &[i64], is_one| -> Vec<(i64, bool)> {
        values.iter().map(|value| (*value, is_one)).collect()
    };
    let mut all = [labelled(one, true), labelled(other, false)].concat();
    all.sort_unstable();
    let (mut rank_sum, mut ties, mut from) = (0.0, 0.0, 0);
    for same in all.chunk_by(|one, next| one.0 == next.0) {
        let to = from + same.len();
        let (n, mean_rank) = (same.len() as f64, (from + to + 1) as f64 / 2.0);
        let from_one = same.iter().filter(|(_, is_one)| *is_one).count();
        rank_sum += mean_rank * from_one as f64;
        ties += n * n * n - n;
        from = to;
    }
    let (n1, n2) = (one.len() as f64, other.len() as f64);
    let n = n1 + n2;
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;
    let is_apart = u.max(n1 * n2 - u) >= APART * n1 * n2;
    let [least, most] = [
        inflations[0].min(inflations[1]),
        inflations[0].max(inflations[1]),
    ];
    let inflation = if is_apart {
        least
    } else {
        (least + most) / 2.0
    };
    let variance = inflation * n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return None;
    }
    let z = (((u - n1 * n2 / 2.0).abs() - 0.5) / variance.sqrt()).max(0.0);
    Some(erfc(z / std::f64::consts::SQRT_2))
}

/// Returns the 95 % confidence interval of the ratio of the means (other / one), from the percentiles of the bootstrap.
/// Returns `None` if a sample has fewer than two values, or if no resample of `one` has a positive mean.
pub fn ratio_interval(one: &[i64], other: &[i64]) -> Option<(f64, f64)> {
    if one.len() < 2 || other.len() < 2 {
        return None;
    }
    let mut numbers = fastrand::Rng::with_seed(22); // the same interval each time
    let resamples = (DRAWS / (one.len() + other.len())).clamp(LEAST_RESAMPLES, RESAMPLES);
    let mut mean = |values: &[i64]| {
        let drawn = (0..values.len()).map(|_| i128::from(values[numbers.usize(..values.len())]));
        drawn.sum::<i128>() as f64 / values.len() as f64
    };
    let mut ratios: Vec<f64> = (0..resamples)
        .map(|_| (mean(one), mean(other)))
        .filter(|(one, _)| *one > 0.0)
        .map(|(one, other)| other / one)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let at = |thousandths: usize| ratios.get((thousandths * last + 500) / 1_000).copied();
    Some((at(25)?, at(975)?))
}

/// Computes the complementary error function of a number that is not negative (Abramowitz and Stegun 7.1.26, with an
/// error of at most 1.5e-7).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    polynomial * (-x * x).exp()
}

/// Returns true if the last of ascending values is an outlier. The test is Dixon's at 99 % for 3 to 10 values, and
/// three standard deviations of the other values for more. Two values are never apart.
pub(crate) fn is_last_apart(values: &[i64]) -> bool {
    /// Critical values for 3 to 10 values (Rorabacher 1991, two-sided).
    const DIXON: [f64; 8] = [0.994, 0.926, 0.821, 0.740, 0.680, 0.634, 0.598, 0.568];
    let [others @ .., last] = values else {
        return false;
    };
    let (Some(first), Some(before)) = (others.first(), others.last()) else {
        return false;
    };
    let over = |from: i64| last.saturating_sub(from) as f64;
    match values.len() {
        0..3 => false,
        n @ 3..=10 => over(*first) > 0.0 && over(*before) / over(*first) > DIXON[n - 3],
        _ => {
            let from_first = others
                .iter()
                .map(|value| value.saturating_sub(*first) as f64);
            let from_first: Vec<f64> = from_first.collect();
            let n = from_first.len() as f64;
            let mean = from_first.iter().sum::<f64>() / n;
            let squares = from_first.iter().map(|value| (value - mean).powi(2));
            over(*first) - mean > 3.0 * (squares.sum::<f64>() / n).sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_distinguish_samples() {
        // Computed by hand: one sample from 1 to 10, the other from 6 to 15, with ties from 6 to 10. U = 12.5, z =
        // (37.5 − 0.5) / sqrt(174.3421), p = 0.005074
        let (one, other): (Vec<i64>, Vec<i64>) = ((1..=10).collect(), (6..=15).collect());
        let p = mann_whitney(&one, &other).unwrap();
        assert!((p - 0.005_074).abs() < 1e-5, "{p}");
        assert!(mann_whitney(&one, &one).unwrap() > 0.9);
        assert_eq!(mann_whitney(&[5; 9], &[5; 9]), None);
        assert_eq!(mann_whitney(&one, &[1, 2]), None);
    }

    #[test]
    fn dependent_values_are_weaker_evidence() {
        let numbers = || {
            let mut numbers = fastrand::Rng::with_seed(7);
            std::iter::repeat_with(move || numbers.i64(0..1_000))
        };
        let independent: Vec<i64> = numbers().take(400).collect();
        assert!(variance_inflation(&independent) < 1.3);
        // Each value occurs ten times in a row, so 40 of them are independent.
        let waits: Vec<i64> = numbers().take(40).flat_map(|value| [value; 10]).collect();
        let inflation = variance_inflation(&waits);
        assert!((7.0..13.0).contains(&inflation), "{inflation}");
        let later: Vec<i64> = waits.iter().map(|value| value + 120).collect();
        let alone = mann_whitney(&waits, &later).unwrap();
        let in_order = mann_whitney_in_order(&waits, &later).unwrap();
        assert!(alone < 0.001 && in_order > 0.05, "{alone} {in_order}");
        let ramp: Vec<i64> = (0..40).map(|value| value + value % 3).collect();
        for alike in [&[5; 40][..], &ramp, &[]] {
            assert!((1.0..1.1).contains(&variance_inflation(alike)), "{alike:?}");
        }
    }

    #[test]
    fn the_interval_contains_the_ratio() {
        let one: Vec<i64> = (0..400).map(|value| 1_000 + value % 37).collect();
        let twice: Vec<i64> = one.iter().map(|value| 2 * value).collect();
        let (low, high) = ratio_interval(&one, &twice).unwrap();
        assert!(low < 2.0 && 2.0 < high && high - low < 0.01, "{low} {high}");
        let (low, high) = ratio_interval(&one, &one).unwrap();
        assert!(low < 1.0 && 1.0 < high, "{low} {high}");
    }

    #[test]
    fn the_last_value_is_apart_or_not() {
        // For four values, Q = 30/33 is below 0.926 and 60/63 is above it. Two values are never apart.
        assert!(!is_last_apart(&[0, 1, 3, 33]) && is_last_apart(&[0, 1, 3, 63]));
        assert!(!is_last_apart(&[0, 1_000]) && !is_last_apart(&[]) && !is_last_apart(&[5; 4]));
        let mut many: Vec<i64> = (0..20).collect();
        many.push(22);
        assert!(!is_last_apart(&many));
        many[20] = 60;
        assert!(is_last_apart(&many));
    }
}
