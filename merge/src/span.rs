//! Matching of span begins with ends, and the events of a thread in order.

pub(crate) mod group_key;
pub(crate) mod groups;
pub(crate) mod lane_events;
