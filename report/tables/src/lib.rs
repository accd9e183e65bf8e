//! Writes the tables of a recorded serving run as Parquet: `slice`, `args`, `counter`, `flow` and others. Their names and contents correspond to the tables of
//! Perfetto's trace processor (docs/tables.md).
//!
//! ```no_run
//! use trace_tables::{TablesOptions, write_tables};
//!
//! let options = trace_merge::Options::new(["profile_out".into()]);
//! let tables = TablesOptions {
//!     to: "tables".into(),
//!     ..TablesOptions::default()
//! };
//! let (written, _) = write_tables(&options, &tables, &Default::default())?;
//! println!("{} slices in {} bytes", written.slices, written.bytes);
//! # Ok::<(), trace_merge::Error>(())
//! ```
//!
//! One pass over the events ([`trace_merge::events`]) gathers a record of fixed size for each event, and a log of args (`gather`). The records are sorted by
//! process and time, with temporary files if necessary. Then the slices of each process are nested with a stack for each track (`nest`), and written to its
//! files, one row group at a time (`write`).

pub mod command;
mod flow;
mod folder;
mod gather;
mod host_tables;
mod ids;
mod nest;
mod options;
mod process_tables;
mod report_tables;
mod unfinished;
mod write;
mod write_tables;

pub use options::{TablesOptions, Written};
pub use unfinished::Unfinished;
pub use write_tables::write_tables;
