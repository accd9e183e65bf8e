//! Tables from what was gathered.

pub(crate) mod device_times;
pub(crate) mod name_times;
pub(crate) mod requests;
