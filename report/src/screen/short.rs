//! The report in a few lines, for the end of a program that has recorded itself.

use super::amount::{duration, grouped, share};
use super::names::shown;
use crate::statistics::quantiles::Quantiles;
use crate::table::{Finding, NameTime, RowKind, RunReport};

/// Maximum number of findings that are mentioned.
const CAUSES: usize = 3;
/// Maximum number of names that are mentioned.
const NAMES: usize = 3;

/// Returns the label and the text of each summary line. Figures that the trace lacks are left out.
pub fn short(report: &RunReport) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let summary = &report.requests;
    let figures = [
        ("TTFT", &summary.ttft),
        ("TPOT", &summary.tpot),
        ("E2E", &summary.e2e),
    ];
    let figures: Vec<String> = figures
        .iter()
        .filter(|(_, quantiles)| quantiles.n > 0)
        .map(|(name, quantiles)| figure(name, quantiles))
        .collect();
    if !figures.is_empty() {
        lines.push((
            "figures",
            format!("{} ({} requests)", figures.join("; "), grouped(summary.n)),
        ));
    }
    let busy = |device: &crate::DeviceTime| (device.busy_ns as f64, device.wall_ns as f64);
    let shares = report.device.iter().map(busy);
    let by_share =
        |one: &(f64, f64), other: &(f64, f64)| (one.0 / one.1).total_cmp(&(other.0 / other.1));
    let (least, most) = (shares.clone().min_by(by_share), shares.max_by(by_share));
    if let (Some(least), Some(most)) = (least, most) {
        let (least, most) = (share(least.0, least.1), share(most.0, most.1));
        let devices = grouped(report.device.len() as u64);
        lines.push((
            "devices",
            format!("{devices}, busy {least} to {most} of their time"),
        ));
    } else if !report.worker.is_empty() {
        lines.push(("devices", "none recorded".to_owned()));
    }
    let words = |finding: &Finding| {
        let rule = finding.rule.replace('_', " ");
        let share = if finding.waited > 0.0 {
            finding.waited
        } else {
            finding.cost
        };
        match 100.0 * share {
            below if below < 0.5 => rule,
            percent => format!("{rule} ({percent:.0} %)"),
        }
    };
    let causes = report.findings.iter().take(CAUSES).map(words);
    let causes: Vec<String> = causes.collect();
    if !causes.is_empty() {
        lines.push(("findings", causes.join(", ")));
    }
    // Async spans may only have waited for others.
    let is_on_thread = |name: &&NameTime| name.row_kind == RowKind::Thread && name.tsub_ns > 0;
    let names = report.names.iter().filter(is_on_thread).take(NAMES);
    let words =
        |name: &NameTime| format!("{} {}", shown(&name.name), duration(name.tsub_ns as f64));
    let names: Vec<String> = names.map(words).collect();
    if !names.is_empty() {
        lines.push(("time", format!("most on threads: {}", names.join(", "))));
    }
    lines
}

/// Formats the name of a latency with its p50 and its p99.
fn figure(name: &str, quantiles: &Quantiles) -> String {
    format!(
        "{name} p50 {}, p99 {}",
        duration(quantiles.p50_ns),
        duration(quantiles.p99_ns)
    )
}
