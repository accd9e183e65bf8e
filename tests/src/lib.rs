//! Support for the end-to-end tests: the victims, and the comparison of their recordings with what they acknowledged.
//!
//! The tests start real processes, end them in every way that a serving process can end, and compare what the processes acknowledged
//! with what the merge and `format-oracle` can still read.

pub mod chance;
pub mod host_support;
pub mod ledger;
pub mod order;
pub mod progress;
pub mod stepped;
pub mod victim;
