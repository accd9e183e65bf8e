//! The figures of a run while it is written, in memory that does not grow with the run.
//!
//! What is taken of an event (`gather`) and how requests come of it (`fold`) is what a report does. But requests are folded into histograms once they have ended,
//! and names into sums.

mod figures;
mod histogram;
mod last_seconds;
mod live_devices;
mod live_fold;
mod live_names;
mod live_page;
mod live_reader;
mod live_requests;
mod live_stats;
mod prometheus;
mod token_gaps;
mod whole_run;

pub use figures::Figures;
pub use histogram::Histogram;
pub use live_page::live_page;
pub use live_reader::LiveReader;
pub use live_stats::{
    LiveBehind, LiveDevice, LiveEngine, LiveName, LiveProcess, LiveRecorded, LiveRequest,
    LiveState, LiveStats, LiveWindow,
};
pub use prometheus::prometheus;
