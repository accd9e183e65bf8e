//! Bytes to merge, and the parts of them that count.

use crate::event::scan::Part;
use crate::fragment::assembly::Assembly;
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::fragment::ring::Slot;
use crate::summary::chunk_summary::ChunkSummary;
use std::borrow::Cow;
use std::path::Path;

/// Bytes to merge: of a fragment, of a ring slot, or lines about spans that were open.
pub(crate) struct Source<'a> {
    pub(crate) recording: usize,
    /// Number of the segment; `None` for bytes from the ring.
    pub(crate) segment: Option<usize>,
    /// Ring slot that contained these bytes, if any.
    pub(crate) slot: Option<&'a Slot>,
    pub(crate) path: &'a Path,
    pub(crate) bytes: &'a [u8],
    /// True if these are the lines for spans that were open.
    lists_open_spans: bool,
    pub(super) parts: SourceParts<'a>,
    pub(crate) summary: ChunkSummary,
}

/// Parts of a source that count.
pub(super) enum SourceParts<'a> {
    /// Parts of a segment: one for each block, so a long run has many.
    Segment(&'a Assembly, usize),
    Few(Cow<'a, [Part]>),
}

impl<'a> Source<'a> {
    /// Creates a source from lines about a recording that are in none of its segments, such as loss
    /// records. All of the lines count.
    pub(crate) fn from_lines(recording: usize, path: &'a Path, lines: &'a [u8]) -> Source<'a> {
        let all = SourceParts::Few(vec![Part::whole(lines)].into());
        source(recording, None, path, lines, all)
    }

    /// Returns the fragment that contains these bytes, or `None` if they came from a ring.
    pub(crate) fn fragment<'r>(&self, recordings: &'r [Recording]) -> Option<&'r Fragment> {
        recordings[self.recording].fragments.get(self.segment?)
    }

    /// Returns the number of open spans if this source lists a recording's open spans; otherwise
    /// `None`.
    pub(super) fn open_span_count(&self) -> Option<u64> {
        self.lists_open_spans
            .then(|| memchr::memchr_iter(b'\n', self.bytes).count() as u64)
    }

    /// Converts a position in these bytes to an offset in the source's file.
    pub(crate) fn file_offset(&self, at: u64) -> u64 {
        self.slot.map_or(at, |slot| slot.file_offset(at))
    }
}

pub(crate) fn sources<'a>(
    recordings: &'a [Recording],
    assemblies: &'a [Assembly],
) -> Vec<Source<'a>> {
    let mut sources = Vec::new();
    for (number, (recording, assembly)) in recordings.iter().zip(assemblies).enumerate() {
        for (segment, fragment) in recording.fragments.iter().enumerate() {
            let (path, bytes) = (fragment.path.as_path(), fragment.content.bytes());
            let parts = SourceParts::Segment(assembly, segment);
            sources.push(source(number, Some(segment), path, bytes, parts));
        }
        let (Some((ring, _)), Some(place)) = (&recording.ring, &recording.ring_place) else {
            continue;
        };
        let path = place.path();
        for (slot, parts) in &assembly.tail {
            let slot = &ring.slots[*slot];
            let parts = SourceParts::Few(parts.into());
            let tail = source(number, None, path, &slot.bytes, parts);
            sources.push(Source {
                slot: Some(slot),
                ..tail
            });
        }
        sources.push(Source::from_lines(number, path, &assembly.loss_lines));
        sources.push(Source {
            lists_open_spans: true,
            ..Source::from_lines(number, path, &assembly.open_lines)
        });
    }
    sources
}

fn source<'a>(
    recording: usize,
    segment: Option<usize>,
    path: &'a Path,
    bytes: &'a [u8],
    parts: SourceParts<'a>,
) -> Source<'a> {
    Source {
        recording,
        segment,
        slot: None,
        path,
        bytes,
        lists_open_spans: false,
        parts,
        summary: ChunkSummary::default(),
    }
}
