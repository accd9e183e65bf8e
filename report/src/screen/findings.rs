//! Shows the findings of a report, costliest first.

use super::amount::{duration, percent};
use super::options::ScreenOptions;
use super::width::{WIDTH, columns, cut, words, wrapped};
use crate::table::{CostOf, Finding, RunReport};

/// Maximum number of findings that are shown. The costliest ones are shown.
const SHOWN: usize = 5;

/// Minimum width of advice on the line of its evidence, in columns.
const LEAST_ADVICE: usize = 30;

/// Heading if there are no findings.
const NOTHING: &str = "findings   nothing stands out by the rules of docs/time.md";

pub(super) fn write(report: &RunReport, options: ScreenOptions<'_>, out: &mut String) {
    if report.findings.is_empty() {
        out.push_str(&format!("{NOTHING}\n"));
    } else {
        write_findings(report, options, out);
    }
    for unrecognized in &report.unrecognized {
        let sentence = unrecognized.sentence();
        out.push_str(&format!("  {}\n", sentence.replacen(": ", ":\n    ", 1)));
    }
    out.push('\n');
}

fn write_findings(report: &RunReport, options: ScreenOptions<'_>, out: &mut String) {
    let time_range = match report.device.is_empty() {
        true => "worker time is from the first step of a worker to its last",
        false => "device time is from the first slice of a device to its last",
    };
    let mut findings = report.findings.iter().take(SHOWN);
    let waiting = match findings.any(|finding| has_waiting_share(report, finding)) {
        true => "waiting time is the time in which users waited for answers; ",
        false => "",
    };
    out.push_str(&format!(
        "findings   the costliest first; {waiting}{time_range}\n"
    ));
    let e2e = &report.requests.e2e;
    for finding in report.findings.iter().take(SHOWN) {
        let base = match finding.of {
            CostOf::RequestTime if e2e.n > 0 => {
                let each_ns = finding.cost * e2e.mean_ns;
                &format!(
                    "a request's time, {} for the mean request",
                    duration(each_ns)
                )
            }
            _ => whole(report, finding.of),
        };
        let waited = match has_waiting_share(report, finding) {
            true => &format!("{} of waiting time; ", percent(finding.waited)),
            false => "",
        };
        out.push_str(&format!(
            "  {} ({waited}{:.1} % of {base}): {}\n    try: {}\n",
            options.rule(&finding.rule.replace('_', " ")),
            100.0 * finding.cost,
            words(&finding.evidence).join(" "),
            finding.advice
        ));
    }
    if report.findings.len() > SHOWN {
        out.push_str(&format!(
            "  and {} more: --json lists them\n",
            report.findings.len() - SHOWN
        ));
    }
}

/// Returns true if the full report shows the waiting time that a finding caused. A share of a request's time is already
/// a share of its waiting time.
fn has_waiting_share(report: &RunReport, finding: &Finding) -> bool {
    is_waiting(report, finding) && finding.of != CostOf::RequestTime
}

/// Returns true if users waited because of a finding.
fn is_waiting(report: &RunReport, finding: &Finding) -> bool {
    report.requests.n > 0 && finding.waited > 0.0
}

/// Returns the words for the whole that the cost of a finding is a share of.
fn whole(report: &RunReport, cost: CostOf) -> &'static str {
    match cost {
        CostOf::DeviceTime if report.device.is_empty() => "worker time",
        CostOf::DeviceTime => "device time",
        CostOf::RequestTime => "a request's time",
        CostOf::WallTime => "the run's time",
        CostOf::Requests => "the requests",
        CostOf::Figures => "the events",
    }
}

/// Returns the lines on findings for the short screen: a head, and at most two lines for each finding, with its
/// evidence and, if there is room, its advice.
pub(super) fn brief(report: &RunReport, options: ScreenOptions<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let is_waiting = report
        .findings
        .iter()
        .any(|finding| is_waiting(report, finding));
    if !report.findings.is_empty() {
        let head = match is_waiting {
            true => {
                "findings   the costliest first; shares are of the time in which users waited for answers"
            }
            false => "findings   the costliest first",
        };
        lines.push(head.to_owned());
    } else if report.verdict.text.is_empty() {
        lines.push(NOTHING.to_owned());
    }
    let shown = report.findings.iter().take(SHOWN);
    lines.extend(shown.flat_map(|finding| brief_finding(report, finding, options)));
    let kinds = report
        .unrecognized
        .iter()
        .map(|kind| format!("no {}", kind.what));
    let kinds = kinds.collect::<Vec<_>>().join(" and ");
    if let Some(first) = report.unrecognized.first() {
        lines.push(cut(
            &format!(
                "  {kinds} is recognized by name: {} lists the names",
                first.see
            ),
            WIDTH,
        ));
    }
    lines
}

fn brief_finding(report: &RunReport, finding: &Finding, options: ScreenOptions<'_>) -> Vec<String> {
    let rule = finding.rule.replace('_', " ");
    let share = match is_waiting(report, finding) {
        true => percent(finding.waited),
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
        *first = first.replacen(&rule, &options.rule(&rule), 1);
    }
    let indents = ["  ", "    "].into_iter();
    indents
        .zip(lines)
        .map(|(indent, line)| indent.to_owned() + &line)
        .collect()
}
