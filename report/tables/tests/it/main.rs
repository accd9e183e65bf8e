//! Reads the tables with the reader of the parquet crate, and compares them with the tables of Perfetto's trace processor for the same run.
#![expect(clippy::unwrap_used, reason = "tests: a failed step is a failed test")]

#[path = "../../../tests/it/events.rs"]
mod events;
mod hostile;
mod perfetto;
mod recorded;
mod report_tables;
mod tables;
#[path = "../../../tests/it/tool.rs"]
mod tool;
