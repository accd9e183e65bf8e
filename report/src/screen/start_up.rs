//! The start-up of the server, and the settings of its engines.

use super::amount::{cells, duration, figures_table, grouped};
use super::names::{process_name, shown};
use super::width::{WIDTH, filled, shortened};
use crate::table::RunReport;
use serde_json::Value;

/// Maximum number of spans that are listed.
const LISTED: usize = 12;
/// Maximum width of a setting, in columns.
const SETTING: usize = 40;

pub(super) fn write(report: &RunReport, out: &mut String) {
    let start_up = &report.start_up;
    if start_up.wall_ns == 0 {
        return;
    }
    let wall = duration(start_up.wall_ns as f64);
    out.push_str(&format!(
        "start-up   {wall} until the server was ready; the spans with the most self time (tsub)\n"
    ));
    let mut rows = vec![cells("name|process|started at|ncall|tsub|ttot")];
    rows.extend(start_up.spans.iter().take(LISTED).map(|span| {
        vec![
            shown(&span.name),
            process_name(report, span.process),
            duration(span.start_ns as f64),
            grouped(span.ncall),
            duration(span.tsub_ns as f64),
            duration(span.ttot_ns as f64),
        ]
    }));
    out.push_str(&figures_table(&rows, 2..6));
    out.push('\n');
}

pub(super) fn write_settings(report: &RunReport, out: &mut String) {
    for engine in &report.settings {
        let setting = |(name, value): (&String, &Value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            shortened(&format!("{name} {value}"), SETTING)
        };
        let settings: Vec<String> = engine.values.iter().map(setting).collect();
        let name = process_name(report, engine.process);
        out.push_str(&format!("settings   {name}\n"));
        for line in filled(&settings, ", ", WIDTH - 2, usize::MAX) {
            out.push_str(&format!("  {line}\n"));
        }
        out.push('\n');
    }
}
