//! The verdict at the top of a screen.

use super::options::ScreenOptions;
use super::width::{WIDTH, columns, wrapped};
use crate::table::{RunReport, TraceRange, VerdictRule};

/// Maximum number of lines of text and advice together.
const LINES: usize = 4;

/// Returns the lines of the verdict: what limited the server, what to try, the evidence, and a command that shows it.
pub(super) fn lines(report: &RunReport, options: ScreenOptions<'_>) -> Vec<String> {
    let verdict = &report.verdict;
    let text = wrapped(&verdict.text, WIDTH, LINES - 1);
    if text.is_empty() {
        return text;
    }
    let advice = wrapped(&verdict.advice, WIDTH, LINES - text.len());
    let evidence = wrapped(&verdict.evidence, WIDTH - 2, 2);
    let mut lines: Vec<String> = text.iter().map(|line| options.bold(line)).collect();
    lines.extend(advice);
    lines.extend(evidence.iter().map(|line| format!("  {line}")));
    lines.extend(verdict.place.map(|place| command_line(place, options)));
    lines
}

pub(super) fn write(report: &RunReport, options: ScreenOptions<'_>, out: &mut String) {
    let lines = lines(report, options);
    if !lines.is_empty() {
        out.push_str(&lines.join("\n"));
        out.push_str("\n\n");
    }
}

/// Returns the text and the advice of the verdict in lines, for the end of a recorded command. An unknown verdict has
/// no lines.
pub fn verdict_lines(report: &RunReport) -> Vec<String> {
    let verdict = &report.verdict;
    if verdict.rule == VerdictRule::Unknown {
        return Vec::new();
    }
    let mut lines = wrapped(&verdict.text, WIDTH, LINES);
    lines.extend(wrapped(&verdict.advice, WIDTH, LINES));
    lines
}

/// Returns the line with the command that shows a place in Perfetto.
fn command_line(place: TraceRange, options: ScreenOptions<'_>) -> String {
    let command = |run: &str| {
        format!(
            "  to see it: sa-profile open {run} --at {} --for {}",
            shell_time(place.from_ns.max(0)),
            shell_time(place.dur_ns.max(1))
        )
    };
    let named = options.run.map(command);
    let fits = named.filter(|line| columns(line) <= WIDTH);
    fits.unwrap_or_else(|| command("RUN"))
}

/// Formats a time for a command, in the largest unit that keeps it exact to the microsecond.
fn shell_time(ns: i64) -> String {
    match ns {
        ..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}us", ns / 1_000),
        1_000_000..1_000_000_000 => decimal(ns / 1_000, 3, "ms"),
        _ => decimal(ns / 1_000, 6, "s"),
    }
}

/// Formats microseconds as a decimal number in a unit of 10^`digits` µs, without trailing zeros.
fn decimal(us: i64, digits: usize, unit: &str) -> String {
    let text = format!("{us:0width$}", width = digits + 1);
    let (whole, part) = text.split_at(text.len() - digits);
    let text = format!("{whole}.{part}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}
