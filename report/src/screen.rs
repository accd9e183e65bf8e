//! The report as text: on one screen, or as all tables, most important first.

mod amount;
mod bottlenecks;
mod brief;
mod detail;
mod devices;
mod diff;
mod diff_sentence;
mod findings;
mod idle;
mod load;
mod names;
mod options;
mod prefixes;
mod recorded;
mod requests;
mod short;
mod slowest;
mod start_up;
mod tables_csv;
mod verdict;
mod width;

pub use amount::{aligned, grouped};
pub use bottlenecks::text as bottlenecks_text;
pub use brief::brief;
pub use detail::detail_text;
pub use diff::diff_text;
pub(crate) use idle::words as cause_words;
pub use names::{NameOrder, text as names_text};
pub use options::ScreenOptions;
pub(crate) use requests::request_figures;
pub use short::short;
pub use tables_csv::{Table, table_csv};
pub use verdict::verdict_lines;

use crate::table::RunReport;

/// Number of names in the full report.
const NAMES: usize = 12;

/// Returns all tables of the report, without styles.
pub fn text(report: &RunReport) -> String {
    all(report, ScreenOptions::default())
}

/// Returns all tables of the report.
pub fn all(report: &RunReport, options: ScreenOptions<'_>) -> String {
    let mut out = String::new();
    verdict::write(report, options, &mut out);
    recorded::write(report, &mut out);
    out.push('\n');
    findings::write(report, options, &mut out);
    requests::write(report, &mut out);
    out.push('\n');
    prefixes::write(report, &mut out);
    load::write(report, &mut out);
    devices::write(report, &mut out);
    idle::write(report, &mut out);
    devices::write_ranks(report, &mut out);
    slowest::write(report, &mut out);
    start_up::write_settings(report, &mut out);
    start_up::write(report, &mut out);
    out.push_str(&names::text(report, NameOrder::Tsub, NAMES));
    out
}
