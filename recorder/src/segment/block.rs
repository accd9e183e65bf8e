//! The unit that is appended to a fragment.

use std::sync::atomic::Ordering;

use crate::ring::slot::Slot;
use crate::segment::bound::Contents;
use crate::text::line::count_events;

/// Size of a cache line in bytes. If source and target have the same offset within a line, the copy
/// into the page cache moves whole lines and takes less than half the time.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Lines to append, with their header before them and empty lines after them.
#[derive(Default)]
pub(crate) struct Block<'a> {
    /// The slot and the position of the first line; `None` for a line outside blocks.
    pub(crate) source: Option<(&'a Slot, u64)>,
    pub(crate) header: &'a [u8],
    pub(crate) lines: &'a [u8],
    pub(crate) padding: &'a [u8],
}

impl<'a> Block<'a> {
    /// Wraps a single line, including its newline, in a block without a header. Such a line is
    /// written straight to the fragment, outside the blocks of a ring slot.
    pub(crate) fn line(line: &'a [u8]) -> Block<'a> {
        Block {
            lines: line,
            ..Block::default()
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.parts().map(|part| part.len() as u64).iter().sum()
    }

    pub(crate) fn parts(&self) -> [&'a [u8]; 3] {
        [self.header, self.lines, self.padding]
    }

    /// Returns true if the block comes from slot 0, which contains the process's records about
    /// itself.
    pub(crate) fn is_own(&self) -> bool {
        self.source.is_some_and(|(slot, _)| slot.index == 0)
    }

    /// Adds the block's events to the totals of a segment that it was written to. Also records the
    /// position up to which the segment now contains the block's slot.
    pub(crate) fn add_to(&self, all: &mut Contents) {
        let is_plain = |(slot, from): (&Slot, u64)| {
            slot.index > 0 && from >= slot.named_until.load(Ordering::Relaxed)
        };
        let events = count_events(self.lines, self.source.is_none_or(is_plain));
        all.events += events;
        if let Some((slot, from)) = self.source {
            all.extend_slot(slot.index, from + self.lines.len() as u64);
        }
    }
}
