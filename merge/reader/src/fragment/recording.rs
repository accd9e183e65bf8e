//! What one recorder left behind: its segments and its ring.

use crate::base::file_status::FileId;
use crate::base::folder::Place;
use crate::device::category::RowCategories;
use crate::event::damage::Places;
use crate::event::mend::Repairs;
use crate::fragment::assembly::StreamKey;
use crate::fragment::file::{Fragment, RingFile};
use crate::fragment::liveness::is_alive_here;
use crate::fragment::ring::Ring;
use sa_format::{FragmentHeader, RingKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum time in ns between the moment at which a line is recorded, or a gap begins, and the moment at which the line, or what explains the gap, is
/// written. A stopped process or a hanging disk may take longer.
pub const UNWRITTEN_NS: i64 = 2_000_000_000;

/// A place between the segments of a recording where others are left out.
pub struct SkippedSegments {
    /// The index of the segment after it.
    pub before: usize,
    /// When the first segment that is left out began, in the recording's own time.
    pub begin_ns: Option<i64>,
}

/// The fragments of one recorder, in the order of their segments, and its ring.
#[derive(Default)]
pub struct Recording {
    /// Segments of its fragment, sorted.
    pub fragments: Vec<Fragment>,
    /// Copy of its ring, and the file that it came from.
    pub ring: Option<(Ring, FileId)>,
    /// Path of its ring.
    pub ring_place: Option<Place>,
    /// Whether something lay in the ring's place that is no ring of this recorder.
    pub bad_ring: Option<String>,
    /// Whether its process was seen dead before the ring was copied: only then is the copy all there is.
    pub was_dead: bool,
    /// The newest segment when the ring was copied, as an index of `fragments`.
    pub newest_at_copy: Option<usize>,
    /// The places where segments are left out.
    pub left_out: Vec<SkippedSegments>,
    /// The files of these segments.
    pub left_out_files: Vec<FileId>,
    /// What it is if another profiler wrote it.
    pub foreign: Option<Box<ForeignTrace>>,
}

impl Recording {
    /// Puts a recorder's fragments and its ring together.
    pub fn new(
        fragments: Vec<Fragment>,
        ring_place: Option<Place>,
        ring: Option<RingFile>,
        was_dead: bool,
    ) -> Recording {
        let header = fragments.first().and_then(|first| first.header.as_ref());
        let is_in_memory = header.is_some_and(|header| header.ring != RingKind::File);
        let is_anothers = |ring: &Ring| header.is_some_and(|header| !ring.belongs_to(header));
        let (kept, bad_ring) = match ring {
            Some(RingFile::Read(ring, _)) if is_anothers(&ring) => {
                (None, Some("ring of another recorder".to_owned()))
            }
            Some(RingFile::Read(ring, id)) => (Some((ring, id)), None),
            // If its ring is in memory, it could neither use nor remove the file.
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

    /// Returns true if what explains a gap in a segment may be in a segment that is left out.
    pub(crate) fn may_be_explained_elsewhere(&self, segment: usize) -> bool {
        let end_ns = self.fragments.get(segment + 1).and_then(Fragment::begin_ns);
        let mut next = self.left_out.iter().filter(|place| place.before > segment);
        next.next().is_some_and(|place| {
            let ends_ns = end_ns.map(|end_ns| end_ns.saturating_add(UNWRITTEN_NS));
            place.before == segment + 1 || place.begin_ns.is_none() || ends_ns >= place.begin_ns
        })
    }

    /// Another profiler's trace, as lines.
    pub(crate) fn of_foreign(fragment: Fragment, foreign: ForeignTrace) -> Recording {
        Recording {
            foreign: Some(Box::new(foreign)),
            ..Recording::new(vec![fragment], None, None, false)
        }
    }

    /// The header that says whose clock its times are of.
    pub fn clock_header(&self) -> Option<&FragmentHeader> {
        let foreign = self.foreign.as_ref();
        self.header()
            .or(foreign.and_then(|foreign| foreign.clock.as_ref()))
    }

    /// The path of its first fragment.
    pub fn path(&self) -> Option<&Path> {
        Some(&self.fragments.first()?.path)
    }

    /// Returns the header of its first segment.
    pub fn header(&self) -> Option<&FragmentHeader> {
        self.fragments.first()?.header.as_ref()
    }

    /// Whether its process still runs, as far as that can be seen from here.
    pub fn is_alive(&self) -> bool {
        self.header().and_then(is_alive_here) == Some(true)
    }

    /// Up to which position a stream was in removed segments, as the newest one that tells of any says.
    pub(crate) fn removed_to(&self, stream: StreamKey) -> u64 {
        let mut removals = self.fragments.iter().rev();
        let newest = removals.find_map(|fragment| fragment.removal.as_ref());
        newest.map_or(0, |removal| removal.removed_to(stream))
    }

    /// Whether lines that came after the copy of the ring are in segments that are removed by now: then what was open in it may have ended there.
    pub(crate) fn has_outlived_ring(&self) -> bool {
        let slots = self.ring.iter().flat_map(|(ring, _)| &ring.slots);
        slots
            .into_iter()
            .any(|slot| self.removed_to(slot.stream()) > slot.head)
    }

    /// Whether a ring should be there unless the recording was ended.
    pub fn expects_ring(&self) -> bool {
        let has_none = self.ring.is_none() && self.bad_ring.is_none();
        let header = self.header().filter(|_| has_none);
        header.is_some_and(|header| header.ring == RingKind::File)
    }
}

/// Number of bytes at the start of a file from which its format is detected.
pub const FRONT_BYTES: usize = 4096;

/// The part of a name that is different for each trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinction {
    /// In words: `rank 3`, or a part of its path.
    pub text: String,
    /// True if it is a rank, which all names show.
    pub is_rank: bool,
}

/// Details of a recording that was another profiler's trace, apart from its lines.
#[derive(Default)]
pub struct ForeignTrace {
    /// Name in labels and reports.
    pub name: String,
    /// The part of its name that the other traces do not have. `None` if it is the only one.
    pub distinction: Option<Distinction>,
    /// The rank of its process in a distributed program, if it says so.
    pub rank: Option<u64>,
    /// Which of these traces it is.
    pub number: usize,
    /// Header of the process whose clock its times use; `None` if it needs none.
    pub clock: Option<FragmentHeader>,
    /// Headers of the recorded processes that its pids belong to, by pid.
    pub joined: BTreeMap<i64, FragmentHeader>,
    /// Ids that are strings, by the numbers that replace them.
    pub texts: BTreeMap<i64, String>,
    /// Categories of the spans on its rows, by pid and tid.
    pub rows: BTreeMap<(i64, i64), RowCategories>,
    /// Set if its spans have categories of Kineto. Not set for merged traces, which may contain traces of several profilers.
    pub is_kineto: bool,
    /// Set if a merge wrote it.
    pub is_merged: bool,
    /// Damage found in it.
    pub places: Places,
    /// Repairs made to it.
    pub repairs: Repairs,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its text's first bytes, [`FRONT_BYTES`] at most.
    pub front: Vec<u8>,
}

impl ForeignTrace {
    /// Returns true if the file was empty or had only white space.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
            || self.front.len() < FRONT_BYTES && self.front.trim_ascii_start().is_empty()
    }
}
