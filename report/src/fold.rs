//! Turns gathered events into the tables of a report.

pub(crate) mod crashes;
pub(crate) mod detail;
pub(crate) mod device_times;
mod diff_headline;
mod diff_side;
mod feed;
pub(crate) mod findings;
pub(crate) mod findings_track;
pub(crate) mod gathered;
pub(crate) mod idle_causes;
pub(crate) mod launches;
pub(crate) mod load_levels;
pub(crate) mod name_times;
pub(crate) mod rank_times;
pub(crate) mod recorded;
pub(crate) mod requests;
pub(crate) mod run_diff;
pub(crate) mod serving;
pub(crate) mod stalls;
pub(crate) mod start_up;
pub(crate) mod steps;
pub(crate) mod timeline;
pub(crate) mod value_sorter;
pub(crate) mod verdict;
