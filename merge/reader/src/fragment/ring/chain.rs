//! Chunks of open spans, each with a link to the next one: spans of lanes beyond the lane table, and spans deeper than a thread's stack.

use super::{Area, RingReader, read_entry};
use sa_format::ring as layout;

/// Most entries that a chain is believed to have.
const MAX_ENTRIES: u64 = 1 << 20;

/// The entries of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    chunks: Vec<Chunk>,
}

/// Consecutive entries, followed by the text of each.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    at: u64,
    entries: u64,
    text_bytes: u64,
}

/// Location of an entry and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPlace {
    pub(super) at: u64,
    pub(super) text: Area,
}

impl RingReader<'_> {
    /// Follows the links from the one at `link` on, until one is empty, makes no sense, or leads to what another part of the ring has taken.
    pub(super) fn chain(&mut self, link: u64, seed: u32, text_bytes: usize) -> Chain {
        let (mut chunks, mut link, mut left) = (Vec::new(), link, MAX_ENTRIES);
        while let Some((offset, size)) = read_entry(self.source, seed, link) {
            let end = offset.checked_add(size);
            let is_inside = offset != 0 && end.is_some_and(|end| end <= self.source.len());
            let bytes = usize::try_from(size).unwrap_or(0);
            let entries = (layout::chunk_entries(bytes, text_bytes) as u64).min(left);
            if !is_inside || entries == 0 || self.taken.take(offset..offset + size).is_none() {
                break;
            }
            left -= entries;
            chunks.push(Chunk {
                at: offset,
                entries,
                text_bytes: text_bytes as u64,
            });
            link = offset;
        }
        Chain { chunks }
    }
}

impl Chain {
    /// Returns the places of all entries in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = EntryPlace> {
        self.chunks.iter().flat_map(|chunk| {
            let first = chunk.at + layout::CHUNK_HEAD_BYTES as u64;
            let entry_bytes = layout::OPEN_ENTRY_BYTES as u64;
            let texts = first + chunk.entries * entry_bytes;
            (0..chunk.entries).map(move |nth| EntryPlace {
                at: first + nth * entry_bytes,
                text: Area {
                    at: texts + nth * chunk.text_bytes,
                    bytes: chunk.text_bytes,
                },
            })
        })
    }
}
