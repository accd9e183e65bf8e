//! A run in the formats of others: its stacks for flame graphs and viewers of profiles, its requests and steps as the tables of other profilers.

mod args;
mod batch_span;
mod cache_state;
mod call_span;
mod callgrind;
mod collapsed;
mod export_file;
mod msserviceprofiler;
mod nat;
mod records;
mod span_end;
mod speedscope;
mod trace_clock;

pub use export_file::ExportFile;

use crate::options::ReportOptions;
use crate::read::read_and;
use crate::table::run_report::RunReport;
use clap::ValueEnum;
use records::ExportRecords;
use trace_merge::{Error, Options, Progress};

/// A format of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// A line for each stack, for flamegraph.pl and inferno: names with semicolons between them, and ns.
    Collapsed,
    /// For <https://www.speedscope.app>: a profile for each process.
    Speedscope,
    /// For KCachegrind and callgrind_annotate.
    Callgrind,
}

/// The stacks with the time that they took by themselves. Async work has none.
///
/// # Errors
/// None that is known of: it is written to memory.
pub fn stacks(report: &RunReport, format: StackFormat) -> Result<String, Error> {
    match format {
        StackFormat::Collapsed => Ok(collapsed::text(report)),
        StackFormat::Speedscope => speedscope::json(report),
        StackFormat::Callgrind => Ok(callgrind::text(report)),
    }
}

/// The files of another profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FilesFormat {
    /// Those of NeMo Agent Toolkit's profiler.
    Nat,
    /// Those of msServiceProfiler.
    Msserviceprofiler,
}

/// Reads a run as [`read`](crate::read()) does, and gives the files that the other profiler would write of it.
///
/// # Errors
/// As [`read`](crate::read()).
pub fn export_files(
    options: &Options,
    format: FilesFormat,
    progress: &Progress,
) -> Result<Vec<ExportFile>, Error> {
    let report_options = ReportOptions::default();
    let (report, records) = read_and(options, &report_options, progress, ExportRecords::read)?;
    match format {
        FilesFormat::Nat => nat::files(&report, &records),
        FilesFormat::Msserviceprofiler => msserviceprofiler::files(&report, &records),
    }
}
