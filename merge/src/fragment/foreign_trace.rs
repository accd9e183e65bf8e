//! A recording that was another profiler's trace.

use crate::event::damage::Places;
use crate::event::mend::Repairs;
use sa_recorder::format::FragmentHeader;
use std::collections::BTreeMap;

/// What a recording that was another profiler's trace is, beside its lines.
pub(crate) struct ForeignTrace {
    /// What it is called in labels and reports.
    pub(crate) name: String,
    /// Which of these traces it is.
    pub(crate) number: usize,
    /// Whose clock its times are of; `None` if it needs none.
    pub(crate) clock: Option<FragmentHeader>,
    /// Its pids that are those of recorded processes.
    pub(crate) joined: BTreeMap<i64, FragmentHeader>,
    /// Its ids that are texts, by the numbers that stand for them.
    pub(crate) texts: BTreeMap<i64, String>,
    /// What was wrong in it.
    pub(crate) places: Places,
    /// What was mended in it.
    pub(crate) repairs: Repairs,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

impl ForeignTrace {
    /// Whether its file was empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
