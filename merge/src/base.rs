//! Numbers, text, times and folders: what knows nothing of events.

pub(crate) mod access;
pub(crate) mod duration;
pub(crate) mod file_id;
pub(crate) mod folder;
pub(crate) mod number;
pub(crate) mod part;
pub(crate) mod pattern;
pub(crate) mod progress;
pub(crate) mod size;
pub(crate) mod swar;
pub(crate) mod time_cache;
