//! A run in the formats of others: its stacks for flame graphs and viewers of profiles, its requests and steps as the tables of other profilers.

mod batch_span;
mod cache_state;
mod call_span;
mod callgrind;
mod msserviceprofiler;
mod nat;
mod records;
mod span_end;
mod speedscope;
mod trace_clock;

use crate::options::ReportOptions;
use crate::read::read_and;
use crate::table::run_report::RunReport;
use crate::table::stack_time::path;
use clap::ValueEnum;
use records::ExportRecords;
use trace_merge::events::PlacedEvent;
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
        StackFormat::Collapsed => Ok(collapsed(report)),
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

/// Returns a line for each stack that took time by itself: the process, then its names, as flamegraph.pl reads them.
fn collapsed(report: &RunReport) -> String {
    // No name may contain what separates names. What breaks a line is in none: the merge spells it out.
    let frame = |name: &str| name.replace(';', ":");
    let mut out = String::new();
    for stack in report.stacks.iter().filter(|stack| stack.tsub_ns > 0) {
        out.push_str(&frame(&report.recorded.process_name(stack.process)));
        for of in path(&report.stacks, stack) {
            out.push(';');
            out.push_str(&frame(&of.name));
        }
        out.push_str(&format!(" {}\n", stack.tsub_ns));
    }
    out
}

/// A file of an export, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name in the folder of the export.
    pub name: &'static str,
    /// Its whole text.
    pub text: String,
}

impl ExportFile {
    fn new(name: &'static str, text: String) -> ExportFile {
        ExportFile { name, text }
    }
}

/// Returns an arg of an event that is a whole number.
fn count(event: &PlacedEvent<'_>, name: &str) -> Option<u64> {
    serde_json::from_slice(event.arg(name)?).ok()
}
