//! The events that a program records: spans, async spans, instants, counters, flows, and tracks.

pub(crate) mod async_span;
pub(crate) mod instant;
pub(crate) mod span;
pub(crate) mod track;
