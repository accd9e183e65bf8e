//! Reports where the time of a recorded serving run went: what was recorded and what is missing, what requests waited
//! for, and which names took the time.
//!
//! ```no_run
//! let options = trace_merge::Options::new(["profile_out".into()]);
//! let report = trace_report::read(&options, &Default::default(), &Default::default())?;
//! for name in report.names.iter().take(10) {
//!     println!("{} {} calls, {} ns by itself", name.name, name.ncall, name.tsub_ns);
//! }
//! # Ok::<(), trace_merge::Error>(())
//! ```
//!
//! One pass over the events ([`trace_merge::events`]) collects slices and the events of requests (`gather`). Both are
//! sorted in temporary files if necessary. Slices are nested track by track (`nest`) and folded into the tables of a
//! [`RunReport`], which `screen` prints.

mod amount;
mod bundle;
pub mod command;
mod condition;
mod covered;
mod detail;
mod export;
mod fold;
mod formats;
mod gather;
mod intervals;
pub mod live;
mod nest;
mod options;
mod page;
mod read;
mod rows;
pub mod screen;
mod serving_clock;
mod stack_tree;
mod statements;
mod statistics;
mod table;

/// Counts the bytes that a test allocates.
#[cfg(test)]
#[global_allocator]
static BYTES: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

pub use condition::{Condition, parse_condition};
pub use detail::read_detail;
pub use export::{ExportFile, StackFormat, export_nat, stacks};
pub use fold::findings_track::TraceView;
pub use fold::run_diff::compare;
pub use options::{NamesBy, ReportOptions, Slo, parse_slo};
pub use page::page;
pub use read::{fold_rows, merge_and_read, read, read_findings};
pub use rows::*;
pub use statements::{SQL_ENGINE, STATEMENTS, statement};
pub use statistics::quantiles::Quantiles;
pub use statistics::{mann_whitney, ratio_interval};
pub use table::*;
