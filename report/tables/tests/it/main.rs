//! The tables, read back by Parquet's own reader and compared with what Perfetto's trace processor makes of the same run.
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
