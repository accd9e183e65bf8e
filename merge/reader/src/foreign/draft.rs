//! A trace that was read, before it is known where its times belong.

use super::clock::TimeOrigin;
use super::lines::Lines;
use super::report::ForeignReport;
use crate::fragment::file::Fragment;
use crate::fragment::foreign_trace::ForeignTrace;
use sa_format::Anchor;
use std::path::Path;

/// A trace that was read, before it is known where its times belong.
pub(super) struct TraceDraft<'f> {
    /// The file, without what it holds.
    pub(super) fragment: Fragment,
    pub(super) lines: Lines<'f>,
    /// Folder of the lines' file.
    pub(super) folder: &'f Path,
    pub(super) origin: TimeOrigin,
    /// The readings that place its times.
    pub(super) anchors: Vec<Anchor>,
    /// Set if another program changed the file while it was read.
    pub(super) has_changed: bool,
    /// Facts that are known so far, for the recording and for its report.
    pub(super) foreign: ForeignTrace,
    pub(super) report: ForeignReport,
}
