//! The phases of a run, and the part of it that the figures are about.

use serde::Serialize;

named_enum! {
    /// State of a server during a part of a run.
    pub RunPhaseKind {
        /// The server starts, until it is ready or the first request arrives.
        StartUp = "start_up",
        /// No request is in flight for a long time.
        Idle = "idle",
        /// Requests are in flight, with at most short pauses between them.
        Serving = "serving",
        /// The server ends, after the last request.
        Shutdown = "shutdown",
    }
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunPhase {
    /// State of the server.
    pub kind: RunPhaseKind,
    /// Start, in ns from the start of the trace.
    pub from_ns: i64,
    /// End, in ns from the start of the trace.
    pub to_ns: i64,
}

/// The part of a run that the figures cover: the time in which the server had requests, or the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServingTime {
    /// Start, in ns from the start of the trace.
    pub from_ns: i64,
    /// End, in ns from the start of the trace.
    pub to_ns: i64,
    /// Length without the pauses, in ns. Shares of time refer to it.
    pub wall_ns: i64,
    /// Long pauses between requests, in order. Figures and charts leave them out.
    pub pauses: Vec<Pause>,
    /// True if this is the whole run, because it has no requests or because the whole run was requested.
    pub is_whole: bool,
}

/// A long time in which no request was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Start, in ns from the start of the trace.
    pub from_ns: i64,
    /// End, in ns from the start of the trace.
    pub to_ns: i64,
}

/// The start-up: its length, and the spans that took the most time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StartUp {
    /// Length of the start-up, in ns, or 0 if the trace does not contain it.
    pub wall_ns: i64,
    /// Spans with the most self time, longest first.
    pub spans: Vec<StartUpSpan>,
}

/// All spans of one name in one process during the start-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartUpSpan {
    /// Name of the spans.
    pub name: String,
    /// Number of the process among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Start of the first span, in ns from the start of the trace.
    pub start_ns: i64,
    /// Number of calls.
    pub ncall: u64,
    /// Total time, in ns.
    pub ttot_ns: i64,
    /// Self time, in ns: the total time without inner spans.
    pub tsub_ns: i64,
}
