//! Finds bottlenecks: names by duration times concurrency, and stacks by self time.

use super::amount::{cells, duration, figures_table, grouped, share};
use super::names::{parallel_note, process_name, shown, wall};
use crate::table::{NameTime, RunReport, StackTime, path};
use std::cmp::Reverse;

/// Maximum number of names shown per stack. The innermost ones are shown.
const DEEP: usize = 3;

/// Lists the names with the highest product of mean duration and maximum concurrency, and the stacks with the most self
/// time.
pub fn text(report: &RunReport, top: usize) -> String {
    let mut out = String::new();
    write_names(report, top, &mut out);
    out.push('\n');
    write_stacks(report, top, &mut out);
    out
}

/// Returns the score of a name, by which bottlenecks are sorted: its mean duration in ns times its maximum concurrency.
fn score(name: &NameTime) -> f64 {
    name.duration.mean_ns * name.max_concurrency.unwrap_or(0) as f64
}

/// Writes the table of the `top` names with the highest scores.
fn write_names(report: &RunReport, top: usize, out: &mut String) {
    let mut names: Vec<&NameTime> = report.names.iter().filter(|name| name.ncall > 0).collect();
    names.sort_by(|one, other| score(other).total_cmp(&score(one)));
    out.push_str(
        "names      by score: the mean duration times the maximum number of calls at once\n",
    );
    let mut rows = vec![cells("name|ncall|mean|p95|p99|at once|score")];
    for name in names.into_iter().take(top) {
        rows.push(vec![
            shown(&name.name),
            grouped(name.ncall),
            duration(name.duration.mean_ns),
            duration(name.duration.p95_ns),
            duration(name.duration.p99_ns),
            grouped(name.max_concurrency.unwrap_or(0)),
            duration(score(name)),
        ]);
    }
    out.push_str(&figures_table(&rows, 1..7));
}

/// Writes the table of the `top` stacks with the most self time.
fn write_stacks(report: &RunReport, top: usize, out: &mut String) {
    let stacks = &report.stacks;
    let mut order: Vec<&StackTime> = stacks.iter().filter(|stack| stack.tsub_ns > 0).collect();
    order.sort_by_key(|stack| (Reverse(stack.tsub_ns), Reverse(stack.ttot_ns)));
    out.push_str(&format!(
        "stacks     by tsub, the time excluding inner spans; shares are of {}{}\n",
        wall(report),
        parallel_note(report, order.iter().take(top).map(|stack| stack.tsub_ns))
    ));
    let mut rows = vec![cells("tsub|share|ttot|ncall|process|stack")];
    for stack in order.into_iter().take(top) {
        rows.push(vec![
            duration(stack.tsub_ns as f64),
            share(stack.tsub_ns as f64, report.serving.wall_ns as f64),
            duration(stack.ttot_ns as f64),
            grouped(stack.ncall),
            process_name(report, stack.process),
            innermost(stacks, stack),
        ]);
    }
    out.push_str(&figures_table(&rows, 0..4));
}

/// Returns the names of the innermost frames of a stack, outer ones first and joined by ` › `. It begins with `…` if
/// frames are left out.
fn innermost(stacks: &[StackTime], stack: &StackTime) -> String {
    let path = path(stacks, stack);
    let left_out = path.len().saturating_sub(DEEP);
    let names = path[left_out..].iter().map(|frame| shown(&frame.name));
    let more = (left_out > 0).then(|| "…".to_owned());
    more.into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(" › ")
}
