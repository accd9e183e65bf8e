//! A run in the formats of others: its stacks for flame graphs and viewers of profiles, its requests as the files of NeMo Agent Toolkit.

mod callgrind;
mod nat;
mod speedscope;

pub use nat::export_nat;

use crate::table::{RunReport, path};
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
        StackFormat::Collapsed => Ok(collapsed(report)),
        StackFormat::Speedscope => speedscope::json(report),
        StackFormat::Callgrind => Ok(callgrind::text(report)),
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
