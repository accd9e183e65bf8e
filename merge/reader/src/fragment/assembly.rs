//! Puts segments and ring of a recorder together. Each position counts once (FORMAT.md §4).

mod missing;
mod open;
pub(crate) mod stream;
mod work;

use crate::event::scan::Part;
use crate::store::spill_vec::{List, Spilled};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Slot and generation of a stream.
pub type StreamKey = (u32, u32);

/// Missing positions of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Stream that lacks them.
    pub stream: StreamKey,
    /// Missing positions.
    pub range: Range<u64>,
    /// Segment and offset where the bytes should have been.
    pub place: (usize, u64),
    /// Segment and end offset of the stream's last block before the gap.
    pub before: Option<(usize, usize)>,
    /// Segment and begin offset of the stream's first block after the gap.
    pub after: Option<(usize, usize)>,
}

/// The parts of a recording that count.
#[derive(Default)]
pub struct Assembly {
    /// The parts of each segment that count.
    segments: Vec<SegmentParts>,
    /// Storage of the segments' parts.
    pub parts: Option<Arc<Spilled<Part>>>,
    /// Parts of the ring's slots that count, with the index of each slot.
    pub tail: Vec<(usize, Vec<Part>)>,
    /// The spans that were open, as `B` lines.
    pub open_lines: Vec<u8>,
    /// Loss records for losses in the ring's tables that no record reports.
    pub loss_lines: Vec<u8>,
    /// Positions that nothing covers.
    pub gaps: Vec<Gap>,
    /// A loss record for each gap that no record explains. Set once these gaps are known.
    pub gap_lines: OnceLock<Vec<u8>>,
    /// Broken blocks whose content is not found elsewhere, with the positions that they claim.
    pub bad_blocks: Vec<Gap>,
    /// True if the fragment contains more of slot 0 than the copy of the ring, for example after it was settled.
    pub(crate) beyond_ring: bool,
}

/// The parts of a segment that count.
#[derive(Default)]
struct SegmentParts {
    /// Parts in plain lines and complete blocks, in order.
    whole: List,
    /// Parts in broken blocks.
    broken: Vec<Part>,
}

impl Assembly {
    /// Returns the parts of a segment that count, in order. Adjacent untrusted parts are joined, so that no line is cut where two pieces meet.
    pub fn parts(&self, segment: usize) -> impl Iterator<Item = Part> + '_ {
        let segment_parts = self.segments.get(segment).zip(self.parts.as_deref());
        let whole = segment_parts.map(|(segment, parts)| parts.list(&segment.whole));
        let broken = segment_parts.map(|(segment, _)| segment.broken.iter().copied());
        let mut whole = whole.into_iter().flatten().peekable();
        let mut broken = broken.into_iter().flatten().peekable();
        let in_order = std::iter::from_fn(move || {
            let next = broken.peek().copied();
            let is_before = |part: &Part| next.is_none_or(|next| part.start <= next.start);
            whole.next_if(is_before).or_else(|| broken.next())
        });
        let mut in_order = in_order.peekable();
        std::iter::from_fn(move || {
            let mut part = in_order.next()?;
            let trusted = part.trusted;
            while let Some(next) =
                in_order.next_if(|next| !trusted && !next.trusted && next.start == part.end)
            {
                part.end = next.end;
            }
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::access::Access;
    use crate::base::file_status::FileId;
    use crate::base::folder::FileLocation;
    use crate::fragment::blocks::split;
    use crate::fragment::file::{Content, FileWatch, Fragment, RingFile};
    use crate::fragment::recording::Recording;
    use crate::fragment::ring::{Ring, Slot};
    use crate::fragment::sample::header;
    use crate::fragment::settle;
    use sa_format::RingKind;

    /// Returns lines of four bytes. Line `k` is at position `4 * k`.
    fn lines(range: Range<usize>) -> Vec<u8> {
        range
            .flat_map(|number| format!("l{number:02}\n").into_bytes())
            .collect()
    }

    fn block(range: Range<usize>) -> Vec<u8> {
        settle::block(7, (1, 0), 4 * range.start as u64, &lines(range))
    }

    fn recording(bytes: Vec<u8>, ring: Option<Range<usize>>) -> Recording {
        let id = FileId {
            device: 0,
            inode: 0,
        };
        let fragment = Fragment {
            path: "f".into(),
            folder: None,
            access: Access::OWN,
            id,
            content: Content::Owned(bytes),
            header: Some(header(7)),
            removal: None,
            begin: None,
            watch: FileWatch::default(),
        };
        let ring = ring.map(|range| {
            let (from, head) = (4 * range.start as u64, 4 * range.end as u64);
            let slot = Slot {
                slot: 1,
                from,
                head,
                bytes: lines(range),
                ..Slot::default()
            };
            RingFile::Read(
                Ring {
                    nonce: 7,
                    pid: 7,
                    slots: vec![slot],
                    ..Ring::default()
                },
                id,
            )
        });
        let place = FileLocation::named(std::path::Path::new("r")).unwrap();
        Recording::new(vec![fragment], Some(place), ring, false)
    }

    /// Returns what counts of the only fragment.
    fn assembled(recording: &Recording) -> Assembly {
        recording.assemble(&[split(recording.fragments[0].content.bytes())])
    }

    #[test]
    fn issue_19_an_unfinished_block_of_a_stream_newer_than_the_ring_is_no_damage() {
        // The slot's next thread began after the ring was copied, and its first block is being written.
        let key = "\"gen\":0";
        let newer = String::from_utf8(block(0..4)).unwrap();
        assert!(newer.contains(key));
        let newer = newer.replace(key, "\"gen\":1");
        let torn = newer.as_bytes()[..newer.len() - 6].to_vec();
        let mut recording = recording([block(0..2), torn].concat(), Some(2..3));
        let assembly = assembled(&recording);
        let bytes = recording.fragments[0].content.bytes();
        let parts: Vec<Part> = assembly.parts(0).collect();
        assert_eq!(parts.len(), 1);
        assert_eq!(bytes[parts[0].start..parts[0].end], lines(0..2));
        assert_eq!(assembly.tail, [(0, vec![Part::from_range(0..4, false)])]);
        assert!(assembly.bad_blocks.is_empty());
        // If the process was dead before, its ring is complete.
        recording.was_dead = true;
        assert_eq!(assembled(&recording).bad_blocks.len(), 1);
    }

    #[test]
    fn issue_19_an_invalid_ring_file_is_no_damage_if_the_ring_is_in_memory() {
        for (kind, is_bad) in [(RingKind::Heap, false), (RingKind::File, true)] {
            let mut fragments = recording(block(0..2), None).fragments;
            if let Some(header) = &mut fragments[0].header {
                header.ring = kind;
            }
            let empty = RingFile::Bad("not a ring of version 1".to_owned());
            let recording = Recording::new(fragments, None, Some(empty), true);
            assert_eq!(recording.bad_ring.is_some(), is_bad, "{kind:?}");
        }
    }
}
