//! Whether two samples differ.

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1_000;
/// Values that all resamples together may draw; of larger samples fewer resamples are made.
const DRAWS: usize = 20_000_000;
const LEAST_RESAMPLES: usize = 100;

/// The probability that two samples of one population differ as much in rank (Mann-Whitney U, two-sided, normal approximation with
/// correction for ties and continuity). `None` where a sample has fewer than eight values, or all are equal.
pub fn mann_whitney(one: &[i64], other: &[i64]) -> Option<f64> {
    const LEAST: usize = 8;
    if one.len() < LEAST || other.len() < LEAST {
        return None;
    }
    let of = |values: &[i64], is_one| -> Vec<(i64, bool)> {
        values.iter().map(|value| (*value, is_one)).collect()
    };
    let mut all = [of(one, true), of(other, false)].concat();
    all.sort_unstable();
    let (mut rank_sum, mut ties, mut from) = (0.0, 0.0, 0);
    for same in all.chunk_by(|one, next| one.0 == next.0) {
        let to = from + same.len();
        let (n, mean_rank) = (same.len() as f64, (from + to + 1) as f64 / 2.0);
        let of_one = same.iter().filter(|(_, is_one)| *is_one).count();
        rank_sum += mean_rank * of_one as f64;
        ties += n * n * n - n;
        from = to;
    }
    let (n1, n2) = (one.len() as f64, other.len() as f64);
    let n = n1 + n2;
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;
    let variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return None;
    }
    let z = (((u - n1 * n2 / 2.0).abs() - 0.5) / variance.sqrt()).max(0.0);
    Some(erfc(z / std::f64::consts::SQRT_2))
}

/// Where the ratio of the means (other / one) lies with 95 %, by the bootstrap's percentiles.
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

/// The complementary error function (Abramowitz and Stegun 7.1.26, off by at most 1.5e-7).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    polynomial * (-x * x).exp()
}

/// Whether the last of ascending values lies apart from the others: by Dixon's test at 99 % for 3 to 10 values, for more by three standard deviations of the others.
/// Two values cannot tell.
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
    fn ranks_tell_samples_apart() {
        // By hand: one from 1 to 10, the other from 6 to 15. Tied are 6 to 10. U = 12.5, z = (37.5 − 0.5) / sqrt(174.3421), p = 0.005074
        let (one, other): (Vec<i64>, Vec<i64>) = ((1..=10).collect(), (6..=15).collect());
        let p = mann_whitney(&one, &other).unwrap();
        assert!((p - 0.005_074).abs() < 1e-5, "{p}");
        assert!(mann_whitney(&one, &one).unwrap() > 0.9);
        assert_eq!(mann_whitney(&[5; 9], &[5; 9]), None);
        assert_eq!(mann_whitney(&one, &[1, 2]), None);
    }

    #[test]
    fn the_interval_has_the_ratio() {
        let one: Vec<i64> = (0..400).map(|value| 1_000 + value % 37).collect();
        let twice: Vec<i64> = one.iter().map(|value| 2 * value).collect();
        let (low, high) = ratio_interval(&one, &twice).unwrap();
        assert!(low < 2.0 && 2.0 < high && high - low < 0.01, "{low} {high}");
        let (low, high) = ratio_interval(&one, &one).unwrap();
        assert!(low < 1.0 && 1.0 < high, "{low} {high}");
    }

    #[test]
    fn the_last_value_is_apart_or_not() {
        // Q = 30/33 of four is below 0.926, 60/63 above; of two nothing tells.
        assert!(!is_last_apart(&[0, 1, 3, 33]) && is_last_apart(&[0, 1, 3, 63]));
        assert!(!is_last_apart(&[0, 1_000]) && !is_last_apart(&[]) && !is_last_apart(&[5; 4]));
        let mut many: Vec<i64> = (0..20).collect();
        many.push(22);
        assert!(!is_last_apart(&many));
        many[20] = 60;
        assert!(is_last_apart(&many));
    }
}
