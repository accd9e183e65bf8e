//! The table of names with their times.

use super::amount::{cells, duration, figures_table, grouped, share};
use super::width::shortened;
use crate::table::{NameTime, RowKind, RunReport};
use clap::ValueEnum;
use std::cmp::Reverse;

/// Maximum width of a process name, in columns.
pub(super) const PROCESS: usize = 32;

/// Order of names, highest first: self time, total time, number of calls, or longest slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "docs would appear in the help of --sort")]
pub enum NameOrder {
    #[default]
    Tsub,
    Ttot,
    Ncall,
    Max,
}

/// Returns a table of the first `top` names in this order, with the times of their spans.
pub fn text(report: &RunReport, order: NameOrder, top: usize) -> String {
    let mut names: Vec<&NameTime> = report.names.iter().collect();
    match order {
        NameOrder::Tsub => {}
        NameOrder::Ttot => names.sort_by_key(|name| Reverse(name.ttot_ns)),
        NameOrder::Ncall => names.sort_by_key(|name| Reverse(name.ncall)),
        NameOrder::Max => names.sort_by_key(|name| Reverse(name.duration.max_ns)),
    }
    if names.is_empty() {
        return "names      no span has a start and an end\n".to_owned();
    }
    let shown = top.min(names.len());
    let by = match order {
        NameOrder::Tsub => "tsub, the time excluding inner spans",
        NameOrder::Ttot => "ttot, the time including inner spans",
        NameOrder::Ncall => "ncall, the number of calls",
        NameOrder::Max => "max, the longest call",
    };
    let (all, shown_count) = (grouped(names.len() as u64), grouped(shown as u64));
    let tsub_ns = names.iter().take(shown).map(|name| name.tsub_ns);
    let mut out = format!(
        "names      {shown_count} of {all} by {by}; shares are of {}{}\n",
        wall(report),
        parallel_note(report, tsub_ns)
    );
    let mut rows = vec![cells(
        "name|process|group|ncall|tsub|share|on CPU|ttot|tavg|p50|p99|max",
    )];
    rows.extend(names.iter().take(shown).map(|name| row(report, name)));
    out.push_str(&figures_table(&rows, 3..12));
    out
}

fn row(report: &RunReport, name: &NameTime) -> Vec<String> {
    let wall_ns = report.serving.wall_ns as f64;
    let process = name.process.map(|process| process_name(report, process));
    let calls = match name.ncall == name.ncall_outermost {
        true => grouped(name.ncall),
        false => format!("{}/{}", grouped(name.ncall), grouped(name.ncall_outermost)),
    };
    vec![
        with_kind(&name.name, name.row_kind),
        process.unwrap_or_default(),
        name.group.as_deref().map(shown).unwrap_or_default(),
        calls,
        duration(name.tsub_ns as f64),
        share(name.tsub_ns as f64, wall_ns),
        name.tsub_cpu_ns
            .map(|ns| duration(ns as f64))
            .unwrap_or_default(),
        duration(name.ttot_ns as f64),
        duration(name.tavg_ns),
        duration(name.duration.p50_ns),
        duration(name.duration.p99_ns),
        duration(name.duration.max_ns as f64),
    ]
}

/// Returns a name for a terminal, followed by the kind of its tracks unless they are threads.
pub(super) fn with_kind(name: &str, kind: RowKind) -> String {
    match kind {
        RowKind::Thread => shown(name),
        kind => format!("{} [{}]", shown(name), kind.name()),
    }
}

/// Returns words for the time that shares of names refer to: the whole run, or the part in which the server had
/// requests.
pub(super) fn wall(report: &RunReport) -> &'static str {
    match report.serving.is_whole {
        true => "the run's wall time",
        false => "the serving time",
    }
}

/// Returns a note for a table of times as shares of the run's time. It is empty unless one of the times (`tsub_ns`) is
/// longer than the run, because it is the sum of spans that ran in parallel.
pub(super) fn parallel_note(
    report: &RunReport,
    mut tsub_ns: impl Iterator<Item = i64>,
) -> &'static str {
    match tsub_ns.any(|ns| ns > report.serving.wall_ns) {
        true => ", above 100 % where spans ran in parallel",
        false => "",
    }
}

/// Returns a recorded name for a terminal, shortened to fit a table.
pub(super) fn shown(text: &str) -> String {
    shortened(text, 48)
}

/// Returns the id of a request for a terminal, such as `chatcmpl-12ab34c…5d9f3e`.
pub(super) fn request_id(id: &str) -> String {
    shortened(id, 24)
}

/// Returns the name of a process for a terminal.
pub(super) fn process_name(report: &RunReport, process: usize) -> String {
    shortened(&report.process_name(process), PROCESS)
}
