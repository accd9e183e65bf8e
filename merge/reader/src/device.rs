//! Rules that find the devices in a trace of any profiler, and the events that are their work. They only look at texts: labels, names and categories.
//!
//! The merge applies them to processes and threads (`identity`) and to single events (`events::Devices`). The report and the tables ask the latter, so that
//! they agree.

pub mod category;
pub mod group;
pub mod label;
