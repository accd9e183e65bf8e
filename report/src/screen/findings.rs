//! What stands out.

use super::amount::{duration, percent};
use super::look::Look;
use super::width::{WIDTH, columns, cut, words, wrapped};
use crate::table::{CostOf, Finding, RunReport};

/// Number of findings that are shown, the costliest first.
const SHOWN: usize = 5;

/// Minimum width of advice that follows the evidence on its line.
const LEAST_ADVICE: usize = 30;

/// Heading of a report without findings.
const NOTHING: &str = "findings   nothing stands out by the rules of docs/time.md";

pub(super) fn put(report: &RunReport, look: Look<'_>, out: &mut String) {
    if report.findings.is_empty() {
        out.push_str(&format!("{NOTHING}\n"));
    } else {
        put_findings(report, look, out);
    }
    for unrecognized in &report.unrecognized {
        let sentence = unrecognized.sentence();
        out.push_str(&format!("  {}\n", sentence.replacen(": ", ":\n    ", 1)));
    }
    out.push('\n');
}

fn put_findings(report: &RunReport, look: Look<'_>, out: &mut String) {
    let of_time = match report.device.is_empty() {
        true => "worker time is from the first step of a worker to its last",
        false => "device time is from the first slice of a device to its last",
    };
    out.push_str(&format!("findings   the costliest first; {of_time}\n"));
    let e2e = &report.requests.e2e;
    for finding in report.findings.iter().take(SHOWN) {
        let of = match finding.of {
            CostOf::RequestTime if e2e.n > 0 => {
                let each_ns = finding.cost * e2e.mean_ns;
                &format!("a request's time, {} of the mean one", duration(each_ns))
            }
            _ => whole(report, finding.of),
        };
        let waited = match is_waiting(report, finding) && finding.of != CostOf::RequestTime {
            true => &format!("{} of waiting; ", percent(finding.waited)),
            false => "",
        };
        out.push_str(&format!(
            "  {} ({waited}{:.1} % of {of}): {}\n    try: {}\n",
            look.rule(&finding.rule.replace('_', " ")),
            100.0 * finding.cost,
            words(&finding.evidence).join(" "),
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

/// Returns true if requests waited because of a finding.
fn is_waiting(report: &RunReport, finding: &Finding) -> bool {
    report.requests.n > 0 && finding.waited > 0.0
}

/// Returns the words for the whole that a cost refers to.
fn whole(report: &RunReport, of: CostOf) -> &'static str {
    match of {
        CostOf::DeviceTime if report.device.is_empty() => "worker time",
        CostOf::DeviceTime => "device time",
        CostOf::RequestTime => "a request's time",
        CostOf::WallTime => "the run's time",
        CostOf::Requests => "the requests",
        CostOf::Figures => "the events",
    }
}

/// Returns the findings in at most two lines each: the evidence, and the advice if the evidence leaves room for it.
pub(super) fn brief(report: &RunReport, look: Look<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let is_waiting = report.findings.iter().any(|of| is_waiting(report, of));
    if !report.findings.is_empty() {
        let head = match is_waiting {
            true => "findings   the costliest first; waiting is the time that users waited",
            false => "findings   the costliest first",
        };
        lines.push(head.to_owned());
    } else if report.verdict.text.is_empty() {
        lines.push(NOTHING.to_owned());
    }
    let shown = report.findings.iter().take(SHOWN);
    lines.extend(shown.flat_map(|finding| brief_finding(report, finding, look)));
    let kinds = report
        .unrecognized
        .iter()
        .map(|of| format!("no {}", of.what));
    let kinds = kinds.collect::<Vec<_>>().join(" and ");
    if let Some(first) = report.unrecognized.first() {
        lines.push(cut(
            &format!("  {kinds} is known by name: {} lists the names", first.see),
            WIDTH,
        ));
    }
    lines
}

fn brief_finding(report: &RunReport, finding: &Finding, look: Look<'_>) -> Vec<String> {
    let rule = finding.rule.replace('_', " ");
    let share = match is_waiting(report, finding) {
        true => format!("{} of waiting", percent(finding.waited)),
        false => format!("{} of {}", percent(finding.cost), whole(report, finding.of)),
    };
    let text = format!("{rule} ({share}): {}", finding.evidence);
    let (width, advice) = (WIDTH - 4, format!("try: {}", finding.advice));
    let mut lines = wrapped(&text, width, 2);
    let is_full = lines.len() == 2;
    match lines.last_mut().filter(|_| is_full) {
        Some(last) => {
            let room = width.saturating_sub(columns(last) + columns("; "));
            if room >= LEAST_ADVICE {
                *last += &format!("; {}", cut(&advice, room));
            }
        }
        None => lines.push(cut(&advice, width)),
    }
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(&rule, &look.rule(&rule), 1);
    }
    let indents = ["  ", "    "].into_iter();
    indents
        .zip(lines)
        .map(|(indent, line)| indent.to_owned() + &line)
        .collect()
}
