//! A time with unusually many requests.

use serde::Serialize;

/// The times with unusually many requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spikes {
    /// How many there are.
    pub n: u64,
    /// The ten longest, in the order of time.
    pub longest: Vec<Spike>,
}

/// A time in which more requests were under way than in nine tenths of the run: from the first that was too many until there were no more than in half of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spike {
    /// When it began, in ns from the begin of the trace.
    pub start_ns: i64,
    /// How long it was, in ns; up to the last request's end if it is not over there.
    pub dur_ns: i64,
    /// The most requests at once.
    pub peak: u64,
    /// Requests that were under way in it, at any time.
    pub requests: u64,
    /// The mean time from arrival to end of those that have both, in ns; and that of all others.
    pub e2e_mean_ns: Option<f64>,
    /// See there.
    pub others_e2e_mean_ns: Option<f64>,
    /// The ids of the first hundred that were under way in it, by arrival.
    pub request_ids: Vec<String>,
}
