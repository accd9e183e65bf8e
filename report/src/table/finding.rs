//! What stands out in a run.

use serde::Serialize;

/// What stands out, with its evidence and what to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static str,
    /// What was seen.
    pub evidence: String,
    /// What it costs: a share of the time of the devices, or of the mean request.
    pub cost: f64,
    /// What `cost` is a share of.
    pub of: CostOf,
    /// What to try.
    pub advice: &'static str,
}

/// A kind of event that the report recognizes by its name, and that a run has none of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unrecognized {
    /// The missing kind of name: `step` or `request`.
    pub what: &'static str,
    /// The figures that the report lacks without it.
    pub consequence: &'static str,
    /// The page and section that list the names.
    pub see: &'static str,
}

impl Unrecognized {
    /// Returns the sentence for the page. The screen breaks it after the colon.
    pub(crate) fn sentence(&self) -> String {
        let Unrecognized {
            what,
            consequence,
            see,
        } = self;
        format!("no {what} is known by name, so {consequence}: {see} lists the names")
    }
}

/// What a cost is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostOf {
    /// The time from the first slice of a device to its last.
    DeviceTime,
    /// The time from a request's arrival to its end.
    RequestTime,
    /// The time of the run.
    WallTime,
    /// All requests.
    Requests,
    /// The figures themselves: some of them say less than they seem to.
    Figures,
}
