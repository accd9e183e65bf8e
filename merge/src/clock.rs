//! One time axis: what brings a recording's times to the reference host's monotonic clock.
//!
//! Recordings of one boot share the clock but for the offset of their time namespace. Other boots and hosts are placed by [`crate::align`].

pub(crate) mod axis;
pub(crate) mod clocks;
mod collective_ends;
pub(crate) mod moment;
pub(crate) mod placement;
pub(crate) mod time_map;
