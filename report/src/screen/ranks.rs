//! Which rank came last to collectives.

use super::amount::{cells, duration, grouped, share, table};
use super::names::shown;
use super::recorded::uncertainty;
use crate::table::RunReport;

/// Ranks that are listed; the others are counted.
const LISTED: usize = 16;

pub(super) fn put(report: &RunReport, out: &mut String) {
    if report.rank.is_empty() {
        return;
    }
    let n = report.rank.len();
    let mut ranks = report.rank.iter();
    let is_uncertain = ranks.any(|rank| rank.uncertainty_ns != Some(0));
    let clocks = match is_uncertain {
        true => "; undecided where the difference is within the clocks' uncertainty",
        false => "",
    };
    out.push_str(&format!(
        "ranks      {} of {n}: who began collectives last, and for how long the others waited for it{clocks}\n",
        n.min(LISTED)
    ));
    let mut rows = vec![cells(
        "|collectives|last|outlier|alone late by|waited|undecided|clocks",
    )];
    for rank in report.rank.iter().take(LISTED) {
        rows.push(vec![
            shown(&report.recorded.process_name(rank.process)),
            grouped(rank.collectives),
            share(rank.last as f64, rank.collectives as f64),
            share(rank.outlier as f64, rank.collectives as f64),
            duration(rank.late_ns as f64),
            duration(rank.waited_ns as f64),
            share(rank.undecided as f64, rank.collectives as f64),
            uncertainty(rank.uncertainty_ns),
        ]);
    }
    if !is_uncertain {
        rows.iter_mut().for_each(|row| row.truncate(6));
    }
    out.push_str(&table(&rows, 1..8));
    out.push('\n');
}
