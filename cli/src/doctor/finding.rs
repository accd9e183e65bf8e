//! Result of a check.

use crate::words::printable;
use serde::Serialize;
use std::fmt;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// Everything is as it should be, or harmless.
    Ok,
    /// Recording works, but lacks something.
    Warn,
    /// Recording would not work.
    Fail,
}

/// A finding: the check, its severity, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) status: Status,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// Name of a check. It creates the findings of the check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check(pub(crate) &'static str);

impl Check {
    /// Creates a finding that everything is fine.
    pub(crate) fn ok(self, found: impl Into<String>) -> Finding {
        Finding {
            check: self.0,
            status: Status::Ok,
            found: found.into(),
            hint: None,
        }
    }

    /// Creates a finding that recording works with limitations.
    pub(crate) fn warn(self, found: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding {
            status: Status::Warn,
            hint: Some(hint.into()),
            ..self.ok(found)
        }
    }

    /// Creates a finding that recording does not work.
    pub(crate) fn fail(self, found: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding {
            status: Status::Fail,
            ..self.warn(found, hint)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        write!(
            to,
            "{status:<4}  {:<15} {}",
            self.check,
            printable(&self.found)
        )?;
        match &self.hint {
            Some(hint) => write!(to, " -- {}", printable(hint)),
            None => Ok(()),
        }
    }
}
