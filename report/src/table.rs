//! What a report has, as plain structs.

pub(crate) mod activity;
pub(crate) mod batching;
pub(crate) mod confidence;
pub(crate) mod crash;
pub(crate) mod device_idle;
pub(crate) mod device_time;
pub(crate) mod finding;
pub(crate) mod load_level;
pub(crate) mod metric;
pub(crate) mod name_time;
pub(crate) mod rank_time;
pub(crate) mod recorded;
pub(crate) mod request;
pub(crate) mod request_parts;
pub(crate) mod request_summary;
pub(crate) mod row_kind;
pub(crate) mod run_diff;
pub(crate) mod run_report;
pub(crate) mod sizing;
pub(crate) mod slow_step;
pub(crate) mod spike;
pub(crate) mod stack_time;
pub(crate) mod timeline;
