//! Recording levels as C integers.

use sa_recorder::Level as Recorded;

/// The level of an event. The environment variable `SA_PROFILE_LEVEL` selects the levels that are recorded. Events with an unknown level are not recorded.
pub type Level = u32;

/// Requests, scheduling, steps. Recorded by default.
pub const SA_PROFILE_LEVEL_E2E: Level = 0;
/// Kernel launches. Recorded by default.
pub const SA_PROFILE_LEVEL_KERNEL: Level = 1;
/// Everything else.
pub const SA_PROFILE_LEVEL_VERBOSE: Level = 2;

/// Converts a level from C to the recorder's level, or returns `None` if the number is unknown.
const fn from_number(level: Level) -> Option<Recorded> {
    match level {
        SA_PROFILE_LEVEL_E2E => Some(Recorded::E2e),
        SA_PROFILE_LEVEL_KERNEL => Some(Recorded::Kernel),
        SA_PROFILE_LEVEL_VERBOSE => Some(Recorded::Verbose),
        _ => None,
    }
}

/// Converts a level from C to the recorder's level, or returns `None` if its events are not recorded. Costs one load in that case.
#[inline(always)]
pub(crate) fn enabled(level: Level) -> Option<Recorded> {
    from_number(level).filter(|level| sa_recorder::__wants(*level))
}
