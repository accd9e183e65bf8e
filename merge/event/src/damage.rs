//! What was wrong with the input: kinds, places, totals. Damage is a value, never an error.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most places a report lists; totals stay exact beyond it.
pub const LISTED: usize = 1000;

/// Defines kinds, each with the name that reports use.
macro_rules! named_kinds {
    ($(#[$of:meta])* $kinds:ident { $($(#[$doc:meta])* $kind:ident $name:literal)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kinds {
            $($(#[$doc])* $kind,)*
        }

        impl $kinds {
            /// Returns the name that reports use.
            pub fn name(self) -> &'static str {
                match self { $($kinds::$kind => $name,)* }
            }
        }
    };
}
pub(crate) use named_kinds;

named_kinds! {
    /// A kind of damage (FORMAT.md §5).
    Kind {
        /// The last line has no newline and is no whole event.
        TornTail "torn_tail"
        /// Not a JSON object.
        BadJson "bad_json"
        /// An object without a usable `ph`, `ts`, `pid` or `dur`.
        BadEvent "bad_event"
        /// An event more than 30 days away from all other events of its recording.
        BadTime "bad_time"
        /// An event of a phase that no viewer shows.
        UnknownPhase "unknown_phase"
        /// An arrow or async event (`s`, `t`, `f`, `b`, `n`, `e`) without an id.
        NoId "no_id"
        /// A counter (`C`) without a value that is a number.
        BadCounter "bad_counter"
        /// A `process_name` or `thread_name` whose name is no text, or an empty one.
        BadName "bad_name"
        /// Invalid UTF-8.
        BadUtf8 "bad_utf8"
        /// A run of NUL bytes.
        Nul "nul"
        /// Over 16 MiB.
        LineTooLong "line_too_long"
        /// A byte-order mark.
        Bom "bom"
        /// A block that is incomplete or does not match, and nothing else covers it.
        BadBlock "bad_block"
        /// Missing positions that no loss record explains.
        Gap "gap"
        /// The ring that held the tail is not there.
        RingMissing "ring_missing"
        /// The ring that held the tail is not usable.
        BadRing "bad_ring"
        /// Compressed data that is cut short or invalid.
        BadGzip "bad_gzip"
        /// The file could not be opened or read.
        Unreadable "unreadable"
        /// The file was truncated or rewritten during the merge: what it held afterwards was merged.
        Changed "changed"
    }
}

impl Kind {
    /// Whether it is an object of an event that viewers do not show.
    pub fn is_unshown(self) -> bool {
        matches!(
            self,
            Kind::UnknownPhase | Kind::NoId | Kind::BadCounter | Kind::BadName
        )
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
