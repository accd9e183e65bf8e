//! What the passes over lines could not know of the traces of other profilers → the report.

use super::Report;
use crate::event::damage::Kind;
use crate::foreign::Foreign;
use crate::fragment::recording::Recording;
use std::path::Path;

/// Tells of the traces what the passes over their lines could not know.
pub(crate) fn tell_foreign(recordings: &[Recording], report: &mut Report) {
    for recording in recordings {
        if let (Some(foreign), Some(path)) = (&recording.foreign, recording.path()) {
            tell_of(foreign, path, report);
        }
    }
}

fn tell_of(foreign: &Foreign, path: &Path, report: &mut Report) {
    report.add_places(path, &foreign.places, |at| at);
    report.add_repairs(&foreign.repairs);
    let damage = report.damage.iter().filter(|damage| damage.file == path);
    let of_gzip = damage.filter(|damage| damage.kind == Kind::BadGzip).count() as u64;
    if let Some(input) = report.inputs.iter_mut().find(|input| input.path == path) {
        input.bytes = foreign.bytes;
        input.damage += foreign.places.total() + of_gzip;
    }
    report.foreign.push(foreign.told.clone());
}
