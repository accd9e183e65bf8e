//! Rules that find the devices in a trace of any profiler, and the events that are their work. They only look at texts: labels, names and categories.
//!
//! [`crate::identity`] applies them to processes and threads, [`crate::events::Devices`] to single events. The report and the tables ask the latter, so
//! that they agree.

pub mod category;
pub mod group;
pub mod label;
pub mod row_use;
