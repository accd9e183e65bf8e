//! The report on one screen: the verdict, followed by a few lines about each part of the run.

mod figures;

use super::options::ScreenOptions;
use super::recorded::{missing, notes, serving, summary};
use super::width::{LABEL, WIDTH, cut, filled, first_lines, labelled};
use super::{findings, verdict};
use crate::table::RunReport;

/// Maximum number of lines.
const LINES: usize = 40;

/// Last line of the screen, with the options for more details.
const MORE: &str = "more       --all: every table · --page: a page with charts · --names: functions · sa-profile sql";

/// Returns the screen, with at most 40 lines of at most 100 columns.
pub fn brief(report: &RunReport, options: ScreenOptions<'_>) -> String {
    let mut recorded = labelled_missing(report, options);
    recorded.push(cut(
        &format!("recorded   {}", summary(&report.recorded)),
        WIDTH,
    ));
    recorded.extend(serving(report));
    recorded.push(MORE.to_owned());
    let sections = [
        verdict::lines(report, options),
        findings::brief(report, options),
        figures::requests(report),
        [figures::load(report), figures::devices(report)].concat(),
        recorded,
    ];
    let sections: Vec<Vec<String>> = sections
        .into_iter()
        .filter(|lines| !lines.is_empty())
        .collect();
    let mut room = LINES.saturating_sub(sections.iter().map(Vec::len).sum());
    let mut out = String::new();
    for (nth, lines) in sections.iter().enumerate() {
        if nth > 0 && room > 0 {
            room -= 1;
            out.push('\n');
        }
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Returns at most five lines on lost events and other limits of the figures, the first with the label `missing`.
fn labelled_missing(report: &RunReport, options: ScreenOptions<'_>) -> Vec<String> {
    let width = WIDTH - LABEL;
    let missing = missing(&report.recorded);
    let notes = notes(&report.recorded)
        .into_iter()
        .map(|(label, note)| match label {
            "" => cut(&note, width),
            label => cut(&format!("{label}: {note}"), width),
        });
    let notes: Vec<String> = notes.collect();
    let mut lines = match missing.is_empty() && notes.is_empty() {
        true => vec!["no known losses".to_owned()],
        false => filled(&missing, ", ", width, 2),
    };
    lines.extend(first_lines(notes, 3));
    let mut lines = labelled("missing", &lines);
    if !missing.is_empty() {
        lines[0] = lines[0].replacen("missing", &options.warning("missing"), 1);
    }
    lines
}
