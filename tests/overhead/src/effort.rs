//! How much is measured.

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Turns of each case: children, one after the other, with all other cases in between.
    pub(crate) passes: u32,
    /// Measured rounds in one child.
    pub(crate) rounds: u32,
    /// Events per round and thread of our recorder; others do a quarter of it.
    pub(crate) events: u64,
    /// The same for what records nothing.
    pub(crate) off_events: u64,
    /// Whether children first touch page-cache memory, as a process that has run for a while has.
    pub(crate) warm: bool,
    /// Runs of each tail, and the events in one.
    pub(crate) tail_runs: u32,
    pub(crate) tail_events: u64,
    /// Processes started in each way.
    pub(crate) starts: u32,
    /// Processes killed per recorder and pace.
    pub(crate) kills: u32,
    /// The longest that one of them lives after its first span: at full speed, which fills the disk, and at a pace.
    pub(crate) life_ms: u64,
    pub(crate) paced_life_ms: u64,
    /// Spans per round of a Python recorder.
    pub(crate) python_spans: u64,
}

impl Effort {
    pub(crate) const FULL: Effort = Effort {
        passes: 5,
        rounds: 7,
        events: 40_000,
        off_events: 1_000_000,
        warm: true,
        tail_runs: 3,
        tail_events: 200_000,
        starts: 60,
        kills: 12,
        life_ms: 500,
        paced_life_ms: 3_000,
        python_spans: 20_000,
    };

    pub(crate) const QUICK: Effort = Effort {
        passes: 1,
        rounds: 3,
        events: 20_000,
        off_events: 200_000,
        warm: true,
        tail_runs: 1,
        tail_events: 25_000,
        starts: 5,
        kills: 2,
        life_ms: 60,
        paced_life_ms: 300,
        python_spans: 2_000,
    };

    pub(crate) const TINY: Effort = Effort {
        passes: 1,
        rounds: 2,
        events: 400,
        off_events: 20_000,
        warm: false,
        tail_runs: 1,
        tail_events: 500,
        starts: 2,
        kills: 1,
        life_ms: 10,
        paced_life_ms: 20,
        python_spans: 500,
    };

    /// Whether the numbers may be quoted.
    pub(crate) fn is_full(&self) -> bool {
        self.passes == Effort::FULL.passes
    }
}
