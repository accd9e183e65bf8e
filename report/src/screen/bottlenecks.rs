//! What holds most: names by their time and how many there were at once, and stacks by their own time.

use super::amount::{cells, duration, figures_table, grouped, share};
use super::names::{process_name, shown, wall};
use crate::table::{NameTime, RunReport, StackTime, path};
use std::cmp::Reverse;

/// Names of a stack that are shown: the innermost.
const DEEP: usize = 3;

/// The names with the highest product of mean time and most at once, and the stacks with the most time of their own.
pub fn text(report: &RunReport, top: usize) -> String {
    let mut out = String::new();
    put_names(report, top, &mut out);
    out.push('\n');
    put_stacks(report, top, &mut out);
    out
}

/// The product of the mean duration and the most at once.
fn score(name: &NameTime) -> f64 {
    name.duration.mean_ns * name.max_concurrency.unwrap_or(0) as f64
}

fn put_names(report: &RunReport, top: usize, out: &mut String) {
    let mut names: Vec<&NameTime> = report.names.iter().filter(|of| of.ncall > 0).collect();
    names.sort_by(|one, other| score(other).total_cmp(&score(one)));
    out.push_str(
        "names      by score: the mean duration, times the most that there were at once\n",
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

fn put_stacks(report: &RunReport, top: usize, out: &mut String) {
    let stacks = &report.stacks;
    let mut order: Vec<&StackTime> = stacks.iter().filter(|of| of.tsub_ns > 0).collect();
    order.sort_by_key(|of| (Reverse(of.tsub_ns), Reverse(of.ttot_ns)));
    out.push_str(&format!(
        "stacks     by tsub, the time excluding inner spans; shares are of {}\n",
        wall(report)
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

/// The innermost names of a stack.
fn innermost(stacks: &[StackTime], stack: &StackTime) -> String {
    let path = path(stacks, stack);
    let left_out = path.len().saturating_sub(DEEP);
    let names = path[left_out..].iter().map(|of| shown(&of.name));
    let more = (left_out > 0).then(|| "…".to_owned());
    more.into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(" › ")
}
