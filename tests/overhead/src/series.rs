//! A measured quantity over its rounds.

use measure::quantile::{median, quantile};

/// What the rounds gave, all of one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.0)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The median, and in brackets p10–p90.
    pub(crate) fn with_noise(&self) -> String {
        let (low, high) = (quantile(&self.0, 0.1), quantile(&self.0, 0.9));
        format!(
            "{} ({}–{})",
            number(self.median()),
            number(low),
            number(high)
        )
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Series {
        Series(values.into_iter().collect())
    }
}

/// A number as the page shows it: two decimals below 10, one below 100, else whole with thousands apart.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        whole(value)
    }
}

/// A whole number, thousands apart.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_more_only_before_the_point() {
        for (value, text) in [
            (0.0, "0.00"),
            (1.934, "1.93"),
            (9.996, "10.0"),
            (85.04, "85.0"),
            (99.96, "100"),
            (1_549.6, "1,550"),
            (-1_234_567.0, "-1,234,567"),
            (-3.0, "-3.00"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(whole(7.0), "7");
        assert_eq!(whole(-0.2), "0");
    }

    #[test]
    fn noise_is_shown_beside_the_median() {
        let series: Series = (1..=11).map(f64::from).collect();
        assert_eq!(series.with_noise(), "6.00 (2.00–10.0)");
        assert_eq!(series.max(), 11.0);
        assert_eq!(Series::default().median(), 0.0);
    }
}
