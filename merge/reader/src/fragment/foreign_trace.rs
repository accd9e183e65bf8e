//! A recording that was another profiler's trace.

use crate::device::category::RowCategories;
use crate::event::damage::Places;
use crate::event::mend::Repairs;
use sa_format::FragmentHeader;
use std::collections::BTreeMap;

/// How much of a file is looked at to say what it is, in bytes.
pub const FRONT_BYTES: usize = 4096;

/// The part of a name that is different for each trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinction {
    /// In words: `rank 3`, or a part of its path.
    pub text: String,
    /// True if it is a rank, which all names show.
    pub is_rank: bool,
}

/// What a recording that was another profiler's trace is, beside its lines.
#[derive(Default)]
pub struct ForeignTrace {
    /// What it is called in labels and reports.
    pub name: String,
    /// The part of its name that the other traces do not have. `None` if it is the only one.
    pub distinction: Option<Distinction>,
    /// The rank of its process in a distributed program, if it says so.
    pub rank: Option<u64>,
    /// Which of these traces it is.
    pub number: usize,
    /// Whose clock its times are of; `None` if it needs none.
    pub clock: Option<FragmentHeader>,
    /// Its pids that are those of recorded processes.
    pub joined: BTreeMap<i64, FragmentHeader>,
    /// Its ids that are texts, by the numbers that stand for them.
    pub texts: BTreeMap<i64, String>,
    /// Categories of the spans on its rows, by pid and tid.
    pub rows: BTreeMap<(i64, i64), RowCategories>,
    /// Set if its spans have categories of Kineto. Not set for merged traces, which may contain traces of several profilers.
    pub is_kineto: bool,
    /// Set if a merge wrote it.
    pub is_merged: bool,
    /// What was wrong in it.
    pub places: Places,
    /// What was mended in it.
    pub repairs: Repairs,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its text's first bytes, [`FRONT_BYTES`] at most.
    pub front: Vec<u8>,
}

impl ForeignTrace {
    /// Whether nothing was in its file, or white space alone.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
            || self.front.len() < FRONT_BYTES && self.front.trim_ascii_start().is_empty()
    }
}
