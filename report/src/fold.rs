//! Tables from what was gathered.

pub(crate) mod device_times;
mod feed;
pub(crate) mod findings;
pub(crate) mod gathered;
pub(crate) mod idle_causes;
pub(crate) mod load_levels;
pub(crate) mod name_times;
pub(crate) mod rank_times;
pub(crate) mod request_parts;
pub(crate) mod requests;
pub(crate) mod run_diff;
