//! Records at the beginning of a segment about earlier segments that were removed (FORMAT.md §2.5).

use crate::fragment::assembly::StreamKey;
use sa_format::loss::LossRecord;
use sa_format::{BLOCK_START, FragmentHeader, Record, RemovedStreams};
use std::ops::Range;

/// Removal of older segments, as a segment reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Number of the first segment that was not removed.
    pub first: u32,
    /// Byte range of the loss record's line, including its newline.
    pub line: Range<usize>,
    /// Slot and generation of each stream, and the position up to which its bytes were in removed segments.
    pub streams: Vec<(u32, u32, u64)>,
}

impl Removal {
    /// Returns the position up to which a stream was in removed segments; 0 if no removed segment contained it.
    pub(crate) fn removed_to(&self, stream: StreamKey) -> u64 {
        let mut streams = self.streams.iter();
        let found = streams.find(|(slot, generation, _)| (*slot, *generation) == stream);
        found.map_or(0, |(_, _, to)| *to)
    }
}

/// Reads the removal from the first lines of a segment. The two records about it must agree and be plausible, so that a single changed byte cannot
/// make segments disappear.
pub fn removal(bytes: &[u8], header: &FragmentHeader) -> Option<Removal> {
    let (mut start, mut streams) = (0, None);
    for newline in memchr::memchr_iter(b'\n', bytes) {
        let line = &bytes[start..newline];
        if line.starts_with(BLOCK_START) {
            return None;
        }
        if line.starts_with(br#"{"ph":"M""#)
            && memchr::memmem::find(line, RemovedStreams::NAME.as_bytes()).is_some()
        {
            streams = RemovedStreams::parse(line);
        } else if line.starts_with(br#"{"ph":"i""#) {
            let (loss, streams) = LossRecord::parse(line).zip(streams)?;
            let agree = Some(streams.first) == loss.first && streams.events == loss.events;
            let possible = (1..=header.segment).contains(&streams.first);
            return (agree && possible).then_some(Removal {
                first: streams.first,
                line: start..newline + 1,
                streams: streams.streams,
            });
        }
        start = newline + 1;
    }
    None
}
