//! Typed access to environment variables, with errors that say which value was expected.

use std::fmt;
use std::str::FromStr;

/// The error that a variable has an invalid value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// A lookup of variables. An empty variable counts as unset.
pub(crate) struct Variables<F>(pub(crate) F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        default: T,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, Refused> {
        let Some(value) = self.text(name) else {
            return Ok(default);
        };
        parse(&value)
            .ok_or_else(|| Refused(format!("{name}: expected {expected}, found {value:?}")))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T, Refused> {
        self.parsed(name, default, |value| value.parse().ok(), "a number")
    }

    pub(crate) fn us(&self, name: &str, default: f64) -> Result<u64, Refused> {
        self.parsed(name, default, |value| value.parse().ok(), "microseconds")
            .and_then(|us| {
                ns_of_us(us)
                    .ok_or_else(|| Refused(format!("{name}: expected microseconds, found {us}")))
            })
    }

    pub(crate) fn switch(&self, name: &str) -> Result<bool, Refused> {
        self.choice(name, [("0", false), ("1", true)])
    }

    /// Reads a variable with two possible values. The first one is the default.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: [(&str, T); 2],
    ) -> Result<T, Refused> {
        let parse = |value: &str| {
            let found = choices.iter().find(|(text, _)| *text == value);
            found.map(|(_, meaning)| *meaning)
        };
        let expected = choices.map(|(text, _)| text).join(" or ");
        self.parsed(name, choices[0].1, parse, &expected)
    }
}

/// Converts microseconds to nanoseconds. Returns `None` if the time is negative or at least an hour.
pub(crate) fn ns_of_us(us: f64) -> Option<u64> {
    let valid = (0.0..3.6e9).contains(&us);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in the range just tested"
    )]
    valid.then_some((us * 1000.0).round() as u64)
}
