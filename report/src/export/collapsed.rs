//! Collapsed stacks, as flamegraph.pl takes them.

use crate::table::run_report::RunReport;
use crate::table::stack_time::path;

/// A line for each stack that took time by itself, the process before its names.
pub(super) fn text(report: &RunReport) -> String {
    // What stands between names may be in none. What breaks a line is in none: the merge spells it out.
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
