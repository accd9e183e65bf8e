//! Reports, compared with figures from other sources.
#![expect(clippy::unwrap_used, reason = "tests: a failed step is a failed test")]

mod command;
mod devices;
mod diff;
mod events;
mod export;
mod growth;
mod hostile;
mod idle;
mod msserviceprofiler;
mod nat_files;
mod oracle;
mod page;
mod prefixes;
mod ranks;
mod reports;
mod request_lives;
mod screen;
mod sql;
mod tool;
mod traces;
