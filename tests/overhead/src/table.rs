//! Tables of the page, and numbers as it shows them.

use clap::ValueEnum;
use measure::quantile::quantile;

/// Returns a Markdown table whose first `words` columns are words, the others numbers.
pub(crate) fn markdown<H: AsRef<str>>(
    words: usize,
    head: &[H],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
    let mut text = format!("| {} |\n|", head.join(" | "));
    for column in 0..head.len() {
        text.push_str(if column < words { " --- |" } else { " ---: |" });
    }
    for row in rows {
        text.push_str(&format!("\n| {} |", row.join(" | ")));
    }
    text
}

/// Returns the word for a value on a child's command line.
pub(crate) fn word(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the median.
pub(crate) fn median(values: &[f64]) -> String {
    number(measure::quantile::median(values))
}

/// Returns the median, and in brackets p10–p90.
pub(crate) fn noisy(values: &[f64]) -> String {
    let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| number(quantile(values, share)));
    format!("{middle} ({low}–{high})")
}

/// Returns a number as the page shows it: two decimals below 10, one below 100, else whole with thousands apart.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => whole(value),
    }
}

/// Returns a whole number, thousands apart.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value <= -0.5 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
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
            (99.96, "100"),
            (1_549.6, "1,550"),
            (-1_234_567.0, "-1,234,567"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(whole(-0.2), "0");
        let series: Vec<f64> = (1..=11).map(f64::from).collect();
        assert_eq!(noisy(&series), "6.00 (2.00–10.0)");
    }
}
