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
