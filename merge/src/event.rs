//! One line: an event parsed, patched, repaired, or damage.

pub(crate) mod canonical;
pub(crate) mod counter;
pub(crate) mod damage;
pub(crate) mod edges;
pub(crate) mod era;
pub(crate) mod event_mask;
pub(crate) mod flow;
pub mod json;
pub mod line;
pub(crate) mod loss;
pub(crate) mod member;
pub(crate) mod mend;
pub(crate) mod own_record;
pub(crate) mod patch;
pub(crate) mod prefix_cache;
pub(crate) mod pypto;
pub mod scan;
pub(crate) mod verbatim;
