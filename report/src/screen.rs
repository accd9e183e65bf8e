//! The report for people: on one screen, or with every table, most important first.

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
mod look;
mod names;
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
pub use look::Look;
pub use names::{NameOrder, text as names_text};
pub(crate) use requests::request_figures;
pub use short::short;
pub use tables_csv::{Table, table_csv};
pub use verdict::verdict_lines;

use crate::table::RunReport;

/// How many names the screen has.
const NAMES: usize = 12;

/// Returns every table of the report, without styles.
pub fn text(report: &RunReport) -> String {
    all(report, Look::default())
}

/// Returns every table of the report.
pub fn all(report: &RunReport, look: Look<'_>) -> String {
    let mut out = String::new();
    verdict::put(report, look, &mut out);
    recorded::put(report, &mut out);
    out.push('\n');
    findings::put(report, look, &mut out);
    requests::put(report, &mut out);
    out.push('\n');
    prefixes::put(report, &mut out);
    load::put(report, &mut out);
    devices::put(report, &mut out);
    idle::put(report, &mut out);
    devices::put_ranks(report, &mut out);
    slowest::put(report, &mut out);
    start_up::put_settings(report, &mut out);
    start_up::put(report, &mut out);
    out.push_str(&names::text(report, NameOrder::Tsub, NAMES));
    out
}
