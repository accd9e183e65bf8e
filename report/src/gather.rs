//! What one pass over the events takes of them.

pub(crate) mod chunk_facts;
pub(crate) mod name_keys;
pub(crate) mod request_moment;
pub(crate) mod slice_record;
pub(crate) mod value_record;
