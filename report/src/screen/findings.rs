//! What stands out.

use super::amount::duration;
use crate::table::{CostOf, RunReport};
use sa_format::visible;

/// How many are shown: the costliest.
const SHOWN: usize = 5;

pub(super) fn put(report: &RunReport, out: &mut String) {
    if report.findings.is_empty() {
        out.push_str("findings   nothing stands out by the rules of docs/time.md\n");
    } else {
        put_findings(report, out);
    }
    for unrecognized in &report.unrecognized {
        let sentence = unrecognized.sentence();
        out.push_str(&format!("  {}\n", sentence.replacen(": ", ":\n    ", 1)));
    }
    out.push('\n');
}

fn put_findings(report: &RunReport, out: &mut String) {
    let of_time = match report.device.is_empty() {
        true => "worker time is from the first step of a worker to its last",
        false => "device time is from the first slice of a device to its last",
    };
    out.push_str(&format!("findings   the costliest first; {of_time}\n"));
    let e2e = &report.requests.e2e;
    for finding in report.findings.iter().take(SHOWN) {
        let of = match finding.of {
            CostOf::DeviceTime if report.device.is_empty() => "worker time",
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
}
