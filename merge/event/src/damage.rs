//! Damage in the input: its kinds, places and totals. Damage is a value, never an error.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of places that a report lists. Totals include all places.
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
        /// A last line without a newline that is not a complete event.
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
        /// A `process_name` or `thread_name` whose name is not a text, or empty.
        BadName "bad_name"
        /// Invalid UTF-8.
        BadUtf8 "bad_utf8"
        /// A run of NUL bytes.
        Nul "nul"
        /// A line of more than 16 MiB.
        LineTooLong "line_too_long"
        /// A byte-order mark.
        Bom "bom"
        /// A block that is incomplete or does not match its checksum, and for which there is no other copy.
        BadBlock "bad_block"
        /// Missing positions that no loss record explains.
        Gap "gap"
        /// A missing ring, although it contained the tail.
        RingMissing "ring_missing"
        /// An invalid ring, although it contained the tail.
        BadRing "bad_ring"
        /// Compressed data that is cut short or invalid.
        BadGzip "bad_gzip"
        /// A file that could not be opened or read.
        Unreadable "unreadable"
        /// A file that was truncated or rewritten during the merge. Its new content was merged.
        Changed "changed"
    }
}

impl Kind {
    /// Returns true if the line is an event that viewers do not show.
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
    /// Fragment, ring or other input file.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// Byte offset in the file.
    pub offset: u64,
    /// Kind of damage.
    pub kind: Kind,
    /// Explanation, if the kind alone is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Serializes a path as text. Bytes that are not UTF-8 become replacement characters, because JSON cannot represent them.
///
/// # Errors
/// If the serializer fails.
pub fn path_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// Serializes an optional path as text or `null`.
///
/// # Errors
/// If the serializer fails.
pub fn path_text_if_some<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, to),
        None => to.serialize_none(),
    }
}

/// Damaged places of one file, in the order in which they were found. The list is bounded, and the totals are exact.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Number of places of each kind.
    pub totals: BTreeMap<Kind, u64>,
    /// Byte offset and kind of the first places.
    pub listed: Vec<(u64, Kind)>,
}

impl Places {
    /// Adds a place at a byte offset.
    pub fn add(&mut self, offset: u64, kind: Kind) {
        *self.totals.entry(kind).or_default() += 1;
        if self.listed.len() < LISTED {
            self.listed.push((offset, kind));
        }
    }

    /// Adds the places of `other`, which come after these.
    pub fn append(&mut self, other: &Places) {
        for (kind, count) in &other.totals {
            *self.totals.entry(*kind).or_default() += count;
        }
        let room = LISTED.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.iter().take(room));
    }

    /// Returns the number of all places.
    pub fn total(&self) -> u64 {
        self.totals.values().sum()
    }
}
