//! Records that one pass over the events collects.

pub(crate) mod chunk_records;
pub(crate) mod detail_events;
pub(crate) mod device_slice;
pub(crate) mod edge;
pub(crate) mod event_times;
pub(crate) mod name_keys;
pub(crate) mod process_ids;
pub(crate) mod prompt_blocks;
pub(crate) mod reasons;
pub(crate) mod request_moment;
pub(crate) mod request_output;
pub(crate) mod settings_record;
pub(crate) mod slice_record;
pub(crate) mod step_record;
