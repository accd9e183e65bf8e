//! What happens around each event that a recorder repeats.

/// Is told of each step of a recorder's loop.
pub trait Beat {
    /// Called directly before the event of `step`.
    #[inline(always)]
    fn before(&mut self, step: u64) {
        let _ = step;
    }

    /// Called directly after the event of `step` is complete.
    #[inline(always)]
    fn after(&mut self, step: u64) {
        let _ = step;
    }
}

/// Nothing: the loop runs as fast as it can.
#[derive(Clone, Copy, Debug)]
pub struct Free;

impl Beat for Free {}
