//! What counters of an engine say of one step.

/// The tokens of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepTokens {
    pub(crate) process: usize,
    /// When the engine had taken its output in.
    pub(crate) ts_ns: i64,
    pub(crate) prefill: u64,
    pub(crate) decode: u64,
}

/// The tokens that were speculated in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSpeculation {
    pub(crate) process: usize,
    pub(crate) drafted: u64,
    pub(crate) accepted: u64,
}
