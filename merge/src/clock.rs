//! One time axis: maps the times of each recording to the monotonic clock of the reference host.
//!
//! Recordings of one boot share that clock, except for the offset of their time namespace. Other
//! boots and hosts are aligned by [`crate::align`].

pub(crate) mod axis;
pub(crate) mod clocks;
mod collective_ends;
pub(crate) mod moment;
pub(crate) mod placement;
pub(crate) mod time_map;
