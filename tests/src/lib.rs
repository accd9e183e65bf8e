//! Shared pieces of the end-to-end tests: the victims, and what is compared of the recordings that they leave on disk.
//!
//! The tests start real processes, end them in every way a serving process can end, and compare what those processes acknowledged with what
//! can still be read, by the merge and by `format-oracle`.

pub mod chance;
pub mod host_support;
pub mod ledger;
pub mod order;
pub mod progress;
pub mod stepped;
pub mod victim;
