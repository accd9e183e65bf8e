//! Exports a run: its stacks for flame graphs and profile viewers, its requests as the files of NeMo Agent Toolkit.

mod nat;
mod stack_files;

pub use nat::export_nat;

use crate::table::RunReport;
use clap::ValueEnum;
use trace_merge::Error;

/// File format for stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// For flamegraph.pl and inferno: one line per stack, with its names separated by semicolons and its self time in
    /// ns.
    Collapsed,
    /// For <https://www.speedscope.app>: one profile per process.
    Speedscope,
    /// For KCachegrind and callgrind_annotate.
    Callgrind,
}

/// Returns the text of a file with all stacks of names in `report` and their self times, in the given format. Async
/// spans are not part of any stack.
///
/// # Errors
/// Returns the serializer's error. None is expected, because the text is written to memory.
pub fn stacks(report: &RunReport, format: StackFormat) -> Result<String, Error> {
    match format {
        StackFormat::Collapsed => Ok(stack_files::collapsed(report)),
        StackFormat::Speedscope => stack_files::speedscope(report),
        StackFormat::Callgrind => Ok(stack_files::callgrind(report)),
    }
}

/// A file of an export, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// File name in the folder of the export.
    pub name: &'static str,
    /// Complete text of the file.
    pub text: String,
}
