//! In which order requests went through the phases of an engine.

use serde::Serialize;

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
