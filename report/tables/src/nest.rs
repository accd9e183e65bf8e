//! Nesting of the slices of each track.

pub(crate) mod async_tracks;
pub(crate) mod stack;
