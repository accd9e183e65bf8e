//! The report for people: one screen, in the order in which it is best read.

mod amount;
mod bottlenecks;
mod detail;
mod devices;
mod diff;
mod findings;
mod idle;
mod load;
mod names;
mod prefixes;
mod recorded;
mod requests;
mod short;
mod slowest;
mod tables_csv;

pub use amount::{aligned, grouped};
pub use bottlenecks::text as bottlenecks_text;
pub use detail::detail_text;
pub use diff::diff_text;
pub(crate) use idle::words as cause_words;
pub use names::{NameOrder, text as names_text};
pub(crate) use requests::request_figures;
pub use short::short;
pub use tables_csv::{Table, table_csv};

use crate::table::RunReport;

/// How many names the screen has.
const NAMES: usize = 12;

/// The whole screen.
pub fn text(report: &RunReport) -> String {
    let mut out = String::new();
    recorded::put(&report.recorded, &mut out);
    out.push('\n');
    findings::put(report, &mut out);
    requests::put(report, &mut out);
    out.push('\n');
    prefixes::put(report, &mut out);
    load::put(report, &mut out);
    devices::put(report, &mut out);
    idle::put(report, &mut out);
    devices::put_ranks(report, &mut out);
    slowest::put(report, &mut out);
    out.push_str(&names::text(report, NameOrder::Tsub, NAMES));
    out
}
