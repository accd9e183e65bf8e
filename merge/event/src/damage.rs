//! What was wrong with the input: kinds, places, totals. Damage is a value, never an error.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most places a report lists; totals stay exact beyond it.
pub const LISTED: usize = 1000;

/// A kind of damage (FORMAT.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The last line has no newline and is no whole event.
    TornTail,
    /// Not a JSON object.
    BadJson,
    /// An object without a usable `ph`, `ts`, `pid` or `dur`.
    BadEvent,
    /// An event whose time lies more than 30 days from all others of its recording.
    BadTime,
    /// An event of a phase that no viewer shows.
    UnknownPhase,
    /// An arrow or async event (`s`, `t`, `f`, `b`, `n`, `e`) without an id.
    NoId,
    /// A counter (`C`) without a value that is a number.
    BadCounter,
    /// A `process_name` or `thread_name` whose name is no text, or an empty one.
    BadName,
    /// Invalid UTF-8.
    BadUtf8,
    /// A run of NUL bytes.
    Nul,
    /// Over 16 MiB.
    LineTooLong,
    /// A byte-order mark.
    Bom,
    /// A block that is incomplete or does not match, and nothing else covers it.
    BadBlock,
    /// Missing positions that no loss record explains.
    Gap,
    /// The ring that held the tail is not there.
    RingMissing,
    /// The ring that held the tail is not usable.
    BadRing,
    /// Compressed data that ends early or is none.
    BadGzip,
    /// The file could not be opened or read.
    Unreadable,
    /// The file was truncated or rewritten during the merge: what it held afterwards was merged.
    Changed,
}

impl Kind {
    /// Whether it is an object of an event that viewers do not show.
    pub fn is_unshown(self) -> bool {
        matches!(
            self,
            Kind::UnknownPhase | Kind::NoId | Kind::BadCounter | Kind::BadName
        )
    }

    /// The name that reports and FORMAT.md use.
    pub fn name(self) -> &'static str {
        match self {
            Kind::TornTail => "torn_tail",
            Kind::BadJson => "bad_json",
            Kind::BadEvent => "bad_event",
            Kind::BadTime => "bad_time",
            Kind::UnknownPhase => "unknown_phase",
            Kind::NoId => "no_id",
            Kind::BadCounter => "bad_counter",
            Kind::BadName => "bad_name",
            Kind::BadUtf8 => "bad_utf8",
            Kind::Nul => "nul",
            Kind::LineTooLong => "line_too_long",
            Kind::Bom => "bom",
            Kind::BadBlock => "bad_block",
            Kind::Gap => "gap",
            Kind::RingMissing => "ring_missing",
            Kind::BadRing => "bad_ring",
            Kind::BadGzip => "bad_gzip",
            Kind::Unreadable => "unreadable",
            Kind::Changed => "changed",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file, a fragment or a ring.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// Byte offset in the file.
    pub offset: u64,
    /// What is wrong there.
    pub kind: Kind,
    /// More words where the kind alone does not explain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Writes a path as text; bytes that are not UTF-8 become replacement characters, for JSON knows no others.
///
/// # Errors
/// Those of the serializer.
pub fn path_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// Writes a path that may be absent, as `null` then.
///
/// # Errors
/// If the serializer fails.
pub fn path_text_if_some<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, to),
        None => to.serialize_none(),
    }
}

/// Places of one file in the order they were met, the list bounded, the totals exact.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// How many of each kind there are.
    pub totals: BTreeMap<Kind, u64>,
    /// The first of them: the byte offset, and the kind.
    pub listed: Vec<(u64, Kind)>,
}

impl Places {
    /// Adds one at a byte offset.
    pub fn add(&mut self, offset: u64, kind: Kind) {
        *self.totals.entry(kind).or_default() += 1;
        if self.listed.len() < LISTED {
            self.listed.push((offset, kind));
        }
    }

    /// Adds those that come after these.
    pub fn append(&mut self, other: &Places) {
        for (kind, count) in &other.totals {
            *self.totals.entry(*kind).or_default() += count;
        }
        let room = LISTED.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.iter().take(room));
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.totals.values().sum()
    }
}
