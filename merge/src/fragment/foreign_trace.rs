//! A recording that was another profiler's trace.

use crate::device::category::RowCategories;
use crate::event::damage::Places;
use crate::event::mend::Repairs;
use sa_format::FragmentHeader;
use std::collections::BTreeMap;

/// How much of a file is looked at to say what it is, in bytes.
pub(crate) const FRONT_BYTES: usize = 4096;

/// The part of a name that is different for each trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distinction {
    /// In words: `rank 3`, or a part of its path.
    pub(crate) text: String,
    /// True if it is a rank, which all names show.
    pub(crate) is_rank: bool,
}

/// What a recording that was another profiler's trace is, beside its lines.
pub(crate) struct ForeignTrace {
    /// What it is called in labels and reports.
    pub(crate) name: String,
    /// The part of its name that the other traces do not have. `None` if it is the only one.
    pub(crate) distinction: Option<Distinction>,
    /// The rank of its process in a distributed program, if it says so.
    pub(crate) rank: Option<u64>,
    /// Which of these traces it is.
    pub(crate) number: usize,
    /// Whose clock its times are of; `None` if it needs none.
    pub(crate) clock: Option<FragmentHeader>,
    /// Its pids that are those of recorded processes.
    pub(crate) joined: BTreeMap<i64, FragmentHeader>,
    /// Its ids that are texts, by the numbers that stand for them.
    pub(crate) texts: BTreeMap<i64, String>,
    /// Categories of the spans on its rows, by pid and tid.
    pub(crate) rows: BTreeMap<(i64, i64), RowCategories>,
    /// Set if its spans have categories of Kineto. Not set for merged traces, which may contain traces of several profilers.
    pub(crate) is_kineto: bool,
    /// Set if a merge wrote it.
    pub(crate) is_merged: bool,
    /// What was wrong in it.
    pub(crate) places: Places,
    /// What was mended in it.
    pub(crate) repairs: Repairs,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// Its text's first bytes, [`FRONT_BYTES`] at most.
    pub(crate) front: Vec<u8>,
}

impl ForeignTrace {
    /// Whether nothing was in its file, or white space alone.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
            || self.front.len() < FRONT_BYTES && self.front.trim_ascii_start().is_empty()
    }
}
