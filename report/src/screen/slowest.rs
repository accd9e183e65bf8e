//! The longest requests, steps and gaps, with what took most of their time.

use super::amount::{cells, duration, figures_table};
use super::idle::words;
use super::names::{process_name, request_id, shown};
use crate::table::{Request, RunReport};
use std::cmp::Reverse;

/// Maximum number of lines of each kind.
const SHOWN: usize = 3;

/// Returns rows for the slowest requests, with their longest parts.
fn slowest_requests(report: &RunReport) -> Vec<Vec<String>> {
    let mut requests: Vec<(&Request, i64)> = report
        .request
        .iter()
        .filter_map(|request| Some((request, request.e2e_ns()?)))
        .collect();
    requests.sort_by_key(|(_, ns)| Reverse(*ns));
    let row = |(request, ns): &(&Request, i64)| {
        let parts = request.parts().unwrap_or_default();
        let longest = parts.into_iter().max_by_key(|(_, ns)| *ns);
        vec![
            "request".to_owned(),
            duration(request.arrival_ns.unwrap_or_default() as f64),
            duration(*ns as f64),
            request_id(&request.request_id),
            longest.map_or_else(String::new, |(part, ns)| {
                format!("{part} {}", duration(ns as f64))
            }),
        ]
    };
    requests.iter().take(SHOWN).map(row).collect()
}

pub(super) fn write(report: &RunReport, out: &mut String) {
    let name = |process| process_name(report, process);
    let time = |start_ns: i64, dur_ns: i64| {
        let (start, dur) = (duration(start_ns as f64), duration(dur_ns as f64));
        [start, dur]
    };
    let mut rows = vec![cells("|at|took|id or process|mostly in")];
    rows.extend(slowest_requests(report));
    for step in report.slow_steps.iter().take(SHOWN) {
        let [at, took] = time(step.start_ns, step.dur_ns);
        let inside = step.inside.iter().take(2);
        let inside: Vec<String> = inside
            .map(|name| format!("{} {}", shown(&name.name), duration(name.tsub_ns as f64)))
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
            "slowest    to see one in Perfetto: sa-profile open RUN --at 1.2s --for 50ms, with its own times\n",
        );
        out.push_str(&figures_table(&rows, 1..3));
        out.push('\n');
    }
}
