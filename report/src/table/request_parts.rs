//! Where the time of requests goes.

use serde::Serialize;

/// A part of the way of a request, from its arrival to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestPart {
    /// `HTTP`, `preprocess` and `IPC` (or `frontend`, which is all three), `queue`, `prefill`, `decode`, `return`, `answer`, or several of them where the trace does not tell them apart.
    pub name: String,
    /// Of the mean request.
    pub mean_ns: f64,
    /// Of the request that is slower than 99 in 100.
    pub p99_ns: i64,
    /// Of the slowest one.
    pub slowest_ns: i64,
}

/// Where the time of requests goes. In each column the parts add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestParts {
    /// Requests that arrived and were answered in the trace.
    pub n: u64,
    /// The parts, in the order of the way.
    pub parts: Vec<RequestPart>,
    /// The whole.
    pub e2e_mean_ns: f64,
    /// See there.
    pub e2e_p99_ns: i64,
    /// See there.
    pub e2e_slowest_ns: i64,
    /// The id of the request that is slower than 99 in 100, and of the slowest.
    pub p99_id: String,
    /// See there.
    pub slowest_id: String,
}

/// The orders of phases that requests went through.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Requests whose queue and end are in the trace.
    pub n: u64,
    /// Each order, that of most requests first.
    pub sequences: Vec<PhaseSequence>,
}

/// An order of phases, and the requests that went through it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSequence {
    /// The phases with ` → ` between them; with ` → …` behind the eighth, what follows is cut off.
    pub sequence: String,
    /// How many requests went through it.
    pub requests: u64,
    /// Their share of all.
    pub share: f64,
    /// From the queue to the last token, of all of them, in ns.
    pub total_ns: i64,
    /// Of the mean one.
    pub mean_ns: f64,
    /// Each phase of the mean one, in ns.
    pub phase_mean_ns: Vec<f64>,
}
