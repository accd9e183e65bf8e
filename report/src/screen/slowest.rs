//! The longest steps and gaps, with what was in them.

use super::amount::{duration, table};
use super::idle::words;
use super::names::shown;
use crate::table::run_report::RunReport;

/// Lines of each kind.
const SHOWN: usize = 3;

pub(super) fn put(report: &RunReport, out: &mut String) {
    let name = |process| shown(&report.recorded.process_name(process));
    let time = |start_ns: i64, dur_ns: i64| {
        let (start, dur) = (duration(start_ns as f64), duration(dur_ns as f64));
        [start, dur]
    };
    let head = ["", "at", "took", "of", "most of it"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for step in report.slow_steps.iter().take(SHOWN) {
        let [at, took] = time(step.start_ns, step.dur_ns);
        let inside = step.inside.iter().take(2);
        let inside: Vec<String> = inside
            .map(|of| format!("{} {}", shown(&of.name), duration(of.tsub_ns as f64)))
            .collect();
        rows.push(vec![
            "step".to_owned(),
            at,
            took,
            name(step.process),
            inside.join(", "),
        ]);
    }
    for gap in report.long_gaps.iter().take(SHOWN) {
        let [at, took] = time(gap.start_ns, gap.dur_ns);
        let cause = format!("{} {}", words(gap.cause).0, duration(gap.cause_ns as f64));
        rows.push(vec!["gap".to_owned(), at, took, name(gap.process), cause]);
    }
    if rows.len() > 1 {
        out.push_str(
            "slowest    to look at one: sa-profile open RUN --at 1.2s --for 50ms, with its time\n",
        );
        out.push_str(&table(&rows, 1..3));
        out.push('\n');
    }
}
