//! Rules that find the devices in a trace of any profiler, and the events that are work of a device. They only use texts: labels, names and
//! categories.
//!
//! The merge applies them to processes and threads (`identity`) and to single events (`events::Devices`). The report and the tables use the latter,
//! so that all of them agree.

pub mod category;
pub mod group;
pub mod label;
