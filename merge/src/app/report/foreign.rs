//! What the passes over lines could not know of the traces of other profilers → the report.

use super::Report;
use crate::event::damage::Kind;
use crate::foreign::ForeignReport;
use crate::fragment::foreign_trace::ForeignTrace;
use crate::fragment::recording::Recording;
use std::path::Path;

/// Tells of the traces what the passes over their lines could not know; `told` is of each of them.
pub(crate) fn tell_foreign(recordings: &[Recording], told: &[ForeignReport], report: &mut Report) {
    for recording in recordings {
        if let (Some(foreign), Some(path)) = (&recording.foreign, recording.path()) {
            tell_of(foreign, path, report);
        }
    }
    report.foreign = told.to_vec();
}

fn tell_of(foreign: &ForeignTrace, path: &Path, report: &mut Report) {
    report.damage.add_places(path, &foreign.places, |at| at);
    report.repairs.add(&foreign.repairs);
    let damage = report.damage.list.iter();
    let damage = damage.filter(|damage| damage.file == path);
    let of_gzip = damage.filter(|damage| damage.kind == Kind::BadGzip).count() as u64;
    if let Some(input) = report.inputs.iter_mut().find(|input| input.path == path) {
        input.bytes = foreign.bytes;
        input.damage += foreign.places.total() + of_gzip;
    }
}
