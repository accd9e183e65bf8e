//! A merge from its inputs to its report; snapshots and surveys.

pub(crate) mod bar;
pub(crate) mod losses;
pub(crate) mod merge;
pub(crate) mod report;
pub(crate) mod validate;
