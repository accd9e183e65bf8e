//! Time spent in garbage collections.

use super::idle::IDLE;
use super::{draft, longest_gap};
use crate::amount::duration;
use crate::table::{Activity, CostOf, Finding, IdleCause, RunReport, StackTime};
use std::collections::BTreeMap;

/// Minimum duration of a collection to be reported.
const LONG_NS: i64 = 1_000_000;

/// Returns the process that spent the most time in garbage collection, that time in ns, and the number of collections.
fn longest_gc(report: &RunReport) -> Option<(usize, i64, u64)> {
    let is_gc = |stack: &&StackTime| Activity::from_name(&stack.name) == Some(Activity::Gc);
    let mut times: BTreeMap<usize, (i64, u64)> = BTreeMap::new();
    for stack in report.stacks.iter().filter(is_gc) {
        let (ns, n) = times.entry(stack.process).or_default();
        *ns = ns.saturating_add(stack.ttot_ns);
        *n += stack.ncall;
    }
    let (process, (ns, n)) = times.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
    Some((process, ns, n))
}

/// Returns a phrase that names the process with the most garbage collection.
pub(super) fn most_gc(report: &RunReport) -> Option<String> {
    let (process, ns, n) = longest_gc(report)?;
    Some(format!(
        "; most of it in {}: {}, {} in total",
        report.process_name(process),
        times_words(n),
        duration(ns as f64)
    ))
}

/// Formats a number of occurrences, such as "once" or "3 times".
fn times_words(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

/// Reports long garbage collections, unless they are already reported as a cause of idle devices.
pub(super) fn garbage(report: &RunReport) -> Option<Finding> {
    let is_gc = |name: &&crate::NameTime| Activity::from_name(&name.name) == Some(Activity::Gc);
    let names = || report.names.iter().filter(is_gc);
    let longest_ns = names().map(|name| name.duration.max_ns).max()?;
    let ncall: u64 = names().map(|name| name.ncall).sum();
    // Several processes may collect at the same time, so the cost is that of the worst one.
    let (_, most_ns, _) = longest_gc(report)?;
    let cost = most_ns as f64 / report.serving.wall_ns.max(1) as f64;
    let is_reported = report.idle_share(IdleCause::Gc) >= IDLE;
    (longest_ns > LONG_NS && !is_reported).then(|| Finding {
        place: longest_gap(report, IdleCause::Gc),
        ..draft(
            "gc",
            format!(
                "Python collected garbage {}, up to {}{}",
                times_words(ncall),
                duration(longest_ns as f64),
                most_gc(report).unwrap_or_default()
            ),
            (cost, CostOf::WallTime),
            "gc.freeze() after start-up, or a higher gc.set_threshold()",
        )
    })
}
