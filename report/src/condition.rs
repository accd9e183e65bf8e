//! Conditions that make a comparison fail (`--fail-if`).

use crate::formats::change;
use crate::statistics::quantiles::Quantiles;
use crate::table::{Metric, RunDiff};
use clap::ValueEnum;
use trace_merge::parse_duration;

/// A condition such as `p95(ttft) > +5%`: a subject, an operator and a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    what: Subject,
    is_above: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Figure(Statistic, Metric),
    RequestsPerSecond,
    OutputTokensPerSecond,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Statistic {
    Mean,
    P50,
    P90,
    P95,
    P99,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Change as a share of the first run's value.
    Relative(f64),
    /// Change in ns, or in requests or tokens per second.
    Change(f64),
    /// Value of the second run.
    Value(f64),
}

impl Statistic {
    fn value(self, figures: &Quantiles) -> Option<f64> {
        let value = match self {
            Statistic::Mean => figures.mean_ns,
            Statistic::P50 => figures.p50_ns,
            Statistic::P90 => figures.p90_ns,
            Statistic::P95 => figures.p95_ns,
            Statistic::P99 => figures.p99_ns,
            Statistic::Max => figures.max_ns as f64,
        };
        (figures.n > 0).then_some(value)
    }
}

/// Parses a condition.
///
/// # Errors
/// Returns a message with what was expected and found.
pub fn parse_condition(text: &str) -> Result<Condition, String> {
    let expected = |what: &str| format!("expected {what}, such as p95(ttft) > +5%, found {text:?}");
    let operator = text.find(['<', '>']).ok_or_else(|| expected("< or >"))?;
    let (left, right) = (text[..operator].trim(), text[operator + 1..].trim());
    let what = subject(left).ok_or_else(|| {
        let metrics: Vec<&str> = Metric::ALL.into_iter().map(Metric::name).collect();
        expected(&format!(
            "mean, p50, p90, p95, p99 or max of {}, or requests_per_s or output_tokens_per_s",
            metrics.join(", ")
        ))
    })?;
    let limit = limit(right, matches!(what, Subject::Figure(..)))
        .ok_or_else(|| expected("a change such as +5% or -10ms, or a value such as 500ms"))?;
    Ok(Condition {
        text: text.trim().to_owned(),
        what,
        is_above: text[operator..].starts_with('>'),
        limit,
    })
}

fn subject(text: &str) -> Option<Subject> {
    match text {
        "requests_per_s" => return Some(Subject::RequestsPerSecond),
        "output_tokens_per_s" => return Some(Subject::OutputTokensPerSecond),
        _ => {}
    }
    let (statistic, metric) = text.strip_suffix(')')?.split_once('(')?;
    let statistic = Statistic::from_str(statistic.trim(), false).ok()?;
    let mut metrics = Metric::ALL.into_iter();
    let metric = metrics.find(|metric_of| metric_of.name() == metric.trim())?;
    Some(Subject::Figure(statistic, metric))
}

fn limit(text: &str, is_duration: bool) -> Option<Limit> {
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok();
        number.filter(|number| number.is_finite())
    };
    if let Some(percent) = text.strip_suffix('%') {
        return Some(Limit::Relative(number(percent)? / 100.0));
    }
    let (sign, amount) = match text.strip_prefix(['+', '-']) {
        Some(amount) => (Some(text.starts_with('+')), amount),
        None => (None, text),
    };
    let amount = match is_duration {
        true => parse_duration(amount.trim()).ok()?.as_nanos() as f64,
        false => number(amount)?,
    };
    Some(match sign {
        Some(true) => Limit::Change(amount),
        Some(false) => Limit::Change(-amount),
        None => Limit::Value(amount),
    })
}

impl Condition {
    /// Returns a sentence with both values if the condition holds, and `None` if it does not.
    ///
    /// # Errors
    /// Returns an error if a run lacks the value.
    pub fn holds(&self, diff: &RunDiff) -> Result<Option<String>, String> {
        let (one, other) = match self.what {
            Subject::Figure(statistic, metric) => {
                let found = diff.metrics.iter().find(|diff| diff.metric == metric);
                (
                    found.and_then(|diff| statistic.value(&diff.one)),
                    found.and_then(|diff| statistic.value(&diff.other)),
                )
            }
            Subject::RequestsPerSecond => diff.requests_per_s,
            Subject::OutputTokensPerSecond => diff.output_tokens_per_s,
        };
        let lacks = |which: &str| {
            format!(
                "--fail-if {:?}: expected it in both runs, and the {which} one lacks it",
                self.text
            )
        };
        let one = one.ok_or_else(|| lacks("first"))?;
        let other = other.ok_or_else(|| lacks("second"))?;
        let (found, limit) = match self.limit {
            Limit::Relative(limit) => (other / one - 1.0, limit),
            Limit::Change(limit) => (other - one, limit),
            Limit::Value(limit) => (other, limit),
        };
        let holds = if self.is_above {
            found > limit
        } else {
            found < limit
        };
        let unit = match self.what {
            Subject::Figure(..) => (1e-6, " ms"),
            _ => (1.0, " a second"),
        };
        Ok(holds.then(|| {
            format!(
                "{}: {:.3}{} became {:.3}{} ({})",
                self.text,
                one * unit.0,
                unit.1,
                other * unit.0,
                unit.1,
                change(other / one)
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_or_explained() {
        let ttft = Subject::Figure(Statistic::P95, Metric::Ttft);
        let rate = Subject::RequestsPerSecond;
        for (text, what, is_above, limit) in [
            ("p95(ttft) > +5%", ttft, true, Limit::Relative(0.05)),
            ("p95(ttft)>500ms", ttft, true, Limit::Value(5e8)),
            ("p95( ttft ) < -10ms", ttft, false, Limit::Change(-1e7)),
            ("requests_per_s < -5%", rate, false, Limit::Relative(-0.05)),
        ] {
            let found = parse_condition(text).unwrap();
            assert_eq!(
                (found.what, found.is_above, found.limit),
                (what, is_above, limit)
            );
        }
        for wrong in [
            "",
            "ttft > 5%",
            "p95(ttft)",
            "p95(tft) > 5%",
            "p98(ttft) > 5%",
            "p95(ttft) > fast",
            "p95(ttft) > NaN%",
        ] {
            let error = parse_condition(wrong).unwrap_err();
            let is_whole = error.contains("expected") && error.contains("found");
            assert!(is_whole, "{error}");
        }
    }
}
