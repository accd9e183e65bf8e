//! The files that one recorder left behind: its segments and its ring.

use crate::base::file_status::FileId;
use crate::base::folder::FileLocation;
use crate::device::category::TrackCategories;
use crate::event::damage::Places;
use crate::event::mend::Repairs;
use crate::fragment::assembly::StreamKey;
use crate::fragment::file::{Fragment, RingFile};
use crate::fragment::liveness::is_alive_here;
use crate::fragment::ring::Ring;
use sa_format::{FragmentHeader, RingKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum time in ns from the moment when a line is recorded to the moment when it is written, and from the begin of a gap to the record that
/// explains it. It may be longer if the process is stopped or the disk hangs.
pub const UNWRITTEN_NS: i64 = 2_000_000_000;

/// A place between the segments of a recording where others are left out.
pub struct SkippedSegments {
    /// Index of the segment after it.
    pub before: usize,
    /// Time at which the first of these segments was begun, on the recording's own clock.
    pub begin_ns: Option<i64>,
}

/// The fragments of one recorder, sorted by segment, and its ring.
#[derive(Default)]
pub struct Recording {
    /// Segments of its fragment, sorted.
    pub fragments: Vec<Fragment>,
    /// Copy of its ring, and the identity of the ring's file.
    pub ring: Option<(Ring, FileId)>,
    /// Location of its ring.
    pub ring_place: Option<FileLocation>,
    /// Reason why the file in the ring's location is not a ring of this recorder, if there is such a file.
    pub bad_ring: Option<String>,
    /// True if its process was dead before the ring was copied. Only then is the copy complete.
    pub was_dead: bool,
    /// Index in `fragments` of the segment that was the newest when the ring was copied.
    pub newest_at_copy: Option<usize>,
    /// The places where segments are left out.
    pub left_out: Vec<SkippedSegments>,
    /// Identities of the segments that are left out.
    pub left_out_files: Vec<FileId>,
    /// Details of the trace, if another profiler wrote it.
    pub foreign: Option<Box<ForeignTrace>>,
}

impl Recording {
    /// Puts the fragments and the ring of a recorder together.
    pub fn new(
        fragments: Vec<Fragment>,
        ring_place: Option<FileLocation>,
        ring: Option<RingFile>,
        was_dead: bool,
    ) -> Recording {
        let header = fragments.first().and_then(|first| first.header.as_ref());
        let is_in_memory = header.is_some_and(|header| header.ring != RingKind::File);
        let belongs_to_another =
            |ring: &Ring| header.is_some_and(|header| !ring.belongs_to(header));
        let (kept, bad_ring) = match ring {
            Some(RingFile::Read(ring, _)) if belongs_to_another(&ring) => {
                (None, Some("ring of another recorder".to_owned()))
            }
            Some(RingFile::Read(ring, id)) => (Some((ring, id)), None),
            // A recorder whose ring is in memory could neither use nor remove the file.
            Some(RingFile::Bad(why)) if !is_in_memory => (None, Some(why)),
            Some(RingFile::Bad(_) | RingFile::Absent) | None => (None, None),
        };
        Recording {
            fragments,
            ring: kept,
            ring_place,
            bad_ring,
            was_dead,
            ..Recording::default()
        }
    }

    /// Drops the segments that are not needed.
    pub fn keep_segments(&mut self, needed: &[bool]) {
        let mut kept = Vec::new();
        let mut dropped_since: Option<Option<i64>> = None;
        for (fragment, needed) in std::mem::take(&mut self.fragments).into_iter().zip(needed) {
            if !needed {
                dropped_since.get_or_insert(fragment.begin_ns());
                self.left_out_files.push(fragment.id);
                continue;
            }
            self.left_out
                .extend(dropped_since.take().map(|begin_ns| SkippedSegments {
                    before: kept.len(),
                    begin_ns,
                }));
            kept.push(fragment);
        }
        self.fragments = kept;
        self.newest_at_copy = None;
    }

    /// Returns true if the record that explains a gap in this segment may be in a segment that is left out.
    pub(crate) fn may_be_explained_elsewhere(&self, segment: usize) -> bool {
        let end_ns = self.fragments.get(segment + 1).and_then(Fragment::begin_ns);
        let mut next = self.left_out.iter().filter(|place| place.before > segment);
        next.next().is_some_and(|place| {
            let ends_ns = end_ns.map(|end_ns| end_ns.saturating_add(UNWRITTEN_NS));
            place.before == segment + 1 || place.begin_ns.is_none() || ends_ns >= place.begin_ns
        })
    }

    /// Creates the recording of another profiler's trace, converted to lines.
    pub(crate) fn from_foreign(fragment: Fragment, foreign: ForeignTrace) -> Recording {
        Recording {
            foreign: Some(Box::new(foreign)),
            ..Recording::new(vec![fragment], None, None, false)
        }
    }

    /// Returns the header of the process whose clock the times use.
    pub fn clock_header(&self) -> Option<&FragmentHeader> {
        let foreign = self.foreign.as_ref();
        self.header()
            .or(foreign.and_then(|foreign| foreign.clock.as_ref()))
    }

    /// Returns the path of its first fragment.
    pub fn path(&self) -> Option<&Path> {
        Some(&self.fragments.first()?.path)
    }

    /// Returns the header of its first segment.
    pub fn header(&self) -> Option<&FragmentHeader> {
        self.fragments.first()?.header.as_ref()
    }

    /// Returns true if its process is known to be running. It is unknown if the process ran in another boot or pid namespace.
    pub fn is_alive(&self) -> bool {
        self.header().and_then(is_alive_here) == Some(true)
    }

    /// Returns the position up to which a stream was in removed segments, according to the newest segment that records a removal.
    pub(crate) fn removed_to(&self, stream: StreamKey) -> u64 {
        let mut removals = self.fragments.iter().rev();
        let newest = removals.find_map(|fragment| fragment.removal.as_ref());
        newest.map_or(0, |removal| removal.removed_to(stream))
    }

    /// Returns true if lines that were written after the ring was copied are in segments that are removed by now. Spans that are open in the copy may
    /// have ended there.
    pub(crate) fn has_outlived_ring(&self) -> bool {
        let slots = self.ring.iter().flat_map(|(ring, _)| &ring.slots);
        slots
            .into_iter()
            .any(|slot| self.removed_to(slot.stream()) > slot.head)
    }

    /// Returns true if a ring should exist unless the recording was ended, and none was found.
    pub fn expects_ring(&self) -> bool {
        let has_none = self.ring.is_none() && self.bad_ring.is_none();
        let header = self.header().filter(|_| has_none);
        header.is_some_and(|header| header.ring == RingKind::File)
    }
}

/// Number of bytes at the start of a file from which its format is detected.
pub const FRONT_BYTES: usize = 4096;

/// The part of a trace's name that differs from the names of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinction {
    /// Text such as `rank 3`, or a part of the path.
    pub text: String,
    /// True if it is a rank, which all names show.
    pub is_rank: bool,
}

/// Details of a recording that was another profiler's trace, in addition to its lines.
#[derive(Default)]
pub struct ForeignTrace {
    /// Name in labels and reports.
    pub name: String,
    /// The part of its name that the other traces do not have. `None` if it is the only one.
    pub distinction: Option<Distinction>,
    /// The rank of its process in a distributed program, if the trace contains it.
    pub rank: Option<u64>,
    /// Number of the trace among all traces of other profilers.
    pub number: usize,
    /// Header of the process whose clock its times use; `None` if it needs none.
    pub clock: Option<FragmentHeader>,
    /// Headers of the recorded processes that its pids belong to, by pid.
    pub joined: BTreeMap<i64, FragmentHeader>,
    /// Ids that are strings, by the numbers that replace them.
    pub texts: BTreeMap<i64, String>,
    /// Categories of the spans on its tracks, by pid and tid.
    pub track_categories: BTreeMap<(i64, i64), TrackCategories>,
    /// True if its spans have categories of Kineto. False for merged traces, which may contain traces of several profilers.
    pub is_kineto: bool,
    /// True if a merge wrote it.
    pub is_merged: bool,
    /// Damage found in it.
    pub places: Places,
    /// Repairs made to it.
    pub repairs: Repairs,
    /// Its length in bytes.
    pub bytes: u64,
    /// The first bytes of its text, at most [`FRONT_BYTES`].
    pub front: Vec<u8>,
}

impl ForeignTrace {
    /// Returns true if the file was empty or contained only white space.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
            || self.front.len() < FRONT_BYTES && self.front.trim_ascii_start().is_empty()
    }
}
