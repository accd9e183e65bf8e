//! Live figures of a run while it is being written, in memory that does not grow with the run.
//!
//! Events are read (`gather`) and folded into requests (`fold`) in the same way as for a report. But once requests have
//! ended, they are folded into histograms with a sketch, and names into sums.

mod figures;
mod histogram;
mod last_seconds;
mod live_fold;
mod live_names;
mod live_reader;
mod live_requests;
mod live_stats;
mod past;
mod prometheus;
mod whole_run;

pub use figures::Figures;
pub use histogram::{Histogram, LiveQuantiles};
pub use live_names::LiveName;
pub use live_reader::LiveReader;
pub use live_stats::{
    LiveDevice, LiveEngine, LiveLag, LiveProcess, LiveRecorded, LiveRequest, LiveState, LiveStats,
    LiveWindow,
};
pub use past::LivePast;
pub use prometheus::prometheus;

const FRAME: &str = include_str!("../page/live.html");
const STYLE: &str = include_str!("../page/page.css");
const SCRIPT: &str = include_str!("../page/live.js");

/// Returns the page that shows the state of a run and refreshes it each second. It needs only `/stats` from the same
/// server.
pub fn live_page() -> String {
    FRAME
        .replace("/* styles */", STYLE)
        .replace("/* scripts */", SCRIPT)
}
