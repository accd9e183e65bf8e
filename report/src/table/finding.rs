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
