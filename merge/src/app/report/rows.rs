//! What lies on rows beside its thread → the report.

use super::Report;
use crate::lanes::moves::Overflow;

pub(crate) fn tell_rows(overflow: &Overflow, report: &mut Report) {
    report.overlapping_spans = overflow.spans;
    report.overlapping_spans_left = overflow.left;
    report.rows_added = overflow.rows().len();
    report.rows_failed.clone_from(&overflow.failure);
}
