//! The stacks of a report in the formats of flame graphs and of other viewers of profiles.

mod callgrind;
mod collapsed;
mod speedscope;

use crate::table::run_report::RunReport;
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
        StackFormat::Collapsed => Ok(collapsed::text(report)),
        StackFormat::Speedscope => speedscope::json(report),
        StackFormat::Callgrind => Ok(callgrind::text(report)),
    }
}
