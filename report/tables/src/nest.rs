//! The slices of each track inside each other.

pub(crate) mod async_tracks;
pub(crate) mod stack;
