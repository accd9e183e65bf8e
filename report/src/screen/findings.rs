//! What stands out.

use super::amount::duration;
use crate::table::finding::CostOf;
use crate::table::run_report::RunReport;
use sa_recorder::format::visible;

/// How many are shown: the costliest.
const SHOWN: usize = 5;

pub(super) fn put(report: &RunReport, out: &mut String) {
    if report.findings.is_empty() {
        out.push_str("findings   nothing stands out by the rules of docs/time.md\n\n");
        return;
    }
    out.push_str("findings   the costliest first; device time is from the first slice of a device to its last\n");
    let e2e = &report.requests.e2e;
    for finding in report.findings.iter().take(SHOWN) {
        let of = match finding.of {
            CostOf::DeviceTime => "device time",
            CostOf::RequestTime if e2e.n > 0 => {
                let each_ns = finding.cost * e2e.mean_ns;
                &format!("a request's time, {} of the mean one", duration(each_ns))
            }
            CostOf::RequestTime => "a request's time",
            CostOf::WallTime => "the run's time",
            CostOf::Requests => "the requests",
            CostOf::Figures => "the events",
        };
        out.push_str(&format!(
            "  {} ({:.1} % of {of}): {}\n    try: {}\n",
            finding.rule.replace('_', " "),
            100.0 * finding.cost,
            visible(&finding.evidence),
            finding.advice
        ));
    }
    if report.findings.len() > SHOWN {
        out.push_str(&format!(
            "  and {} more: --json has them\n",
            report.findings.len() - SHOWN
        ));
    }
    out.push('\n');
}
