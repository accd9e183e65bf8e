//! How detailed events are.

use serde::{Deserialize, Serialize};

/// How detailed an event is; a process records the levels its configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Requests, scheduling, steps.
    E2e,
    /// Kernel launches.
    Kernel,
    /// Everything else.
    Verbose,
}

impl Level {
    /// Returns the level's bit in [`Levels`](crate::Levels).
    pub const fn bit(self) -> u32 {
        match self {
            Level::E2e => 1,
            Level::Kernel => 2,
            Level::Verbose => 4,
        }
    }
}
