//! Levels as numbers.

use sa_recorder::Level as Recorded;

/// What an event belongs to; `SA_PROFILE_LEVEL` in the environment says which levels are recorded. Events of an unknown level are not.
pub type Level = u32;

/// Requests, scheduling, steps. Recorded by default.
pub const SA_PROFILE_LEVEL_E2E: Level = 0;
/// Kernel launches. Recorded by default.
pub const SA_PROFILE_LEVEL_KERNEL: Level = 1;
/// Everything else.
pub const SA_PROFILE_LEVEL_VERBOSE: Level = 2;

/// The level, if it is a known one.
pub(crate) const fn known(level: Level) -> Option<Recorded> {
    match level {
        SA_PROFILE_LEVEL_E2E => Some(Recorded::E2e),
        SA_PROFILE_LEVEL_KERNEL => Some(Recorded::Kernel),
        SA_PROFILE_LEVEL_VERBOSE => Some(Recorded::Verbose),
        _ => None,
    }
}

/// The level, if its events are recorded: one load, while they are not.
#[inline(always)]
pub(crate) fn wanted(level: Level) -> Option<Recorded> {
    known(level).filter(|level| sa_recorder::__wants(*level))
}
