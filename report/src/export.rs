//! A run in the formats of others: its stacks for flame graphs and viewers of profiles, its requests as the files of NeMo Agent Toolkit.

mod nat;
mod stack_files;

pub use nat::export_nat;

use crate::table::RunReport;
use clap::ValueEnum;
use trace_merge::Error;

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
        StackFormat::Collapsed => Ok(stack_files::collapsed(report)),
        StackFormat::Speedscope => stack_files::speedscope(report),
        StackFormat::Callgrind => Ok(stack_files::callgrind(report)),
    }
}

/// A file of an export, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name in the folder of the export.
    pub name: &'static str,
    /// Its whole text.
    pub text: String,
}
