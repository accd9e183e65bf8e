//! A table of open spans that grows by chunks in the ring file. Each chunk contains a link to the
//! next one (FORMAT.md §3).

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::ring::open_entry::OpenEntry;
use crate::ring::text_area::TextArea;
use crate::sys::map::Map;
use sa_format::ring as layout;

/// Maximum number of chunks in a chain. It is enough for all spans that may be open by id: 4,096 on
/// a thread with 63 in a chunk, and 65,536 async ones with 1,024 in a chunk.
const CHUNKS: usize = 65;

/// Entries of open spans beyond the end of a table of fixed size, in chunks of the ring file.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Location of the link to the first chunk.
    first: Link,
    /// Seed of the links' checksums.
    seed: u32,
    chunk_bytes: usize,
    /// Size of each entry's text area in bytes.
    text_bytes: usize,
    /// Number of entries in a chunk.
    entries: usize,
    /// The chunks in use. `None` is a chunk for which the file had no room.
    chunks: [OnceLock<Option<Map>>; CHUNKS],
}

/// A place that stores the offset and size of a part of the file: a directory entry, or a link to a
/// chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) map: Map,
    pub(crate) at: usize,
}

impl Link {
    /// Stores where a part of the ring file begins (`offset`) and its size in bytes, with a
    /// checksum that depends on `seed`. The part must be ready for use, because readers can now
    /// find it.
    pub(crate) fn store(self, seed: u32, offset: usize, bytes: usize) {
        let (offset, bytes) = (offset as u64, u32::try_from(bytes).unwrap_or(0));
        let store_u32 = |at: usize, value| {
            let field = self.map.u32_at(self.at + at);
            field.store(value, Ordering::Relaxed);
        };
        store_u32(layout::ENTRY_SIZE_AT, bytes);
        store_u32(layout::ENTRY_SUM_AT, layout::entry_sum(seed, offset, bytes));
        self.map.u64_at(self.at).store(offset, Ordering::Release);
    }
}

impl Chain {
    /// Creates a chain without chunks. The link to its first chunk will be stored at byte `link_at`
    /// of `map`. Each chunk has `chunk_bytes` bytes, and each entry a text area of `text_bytes`
    /// bytes.
    pub(crate) fn new(
        map: Map,
        link_at: usize,
        seed: u32,
        chunk_bytes: usize,
        text_bytes: usize,
    ) -> Chain {
        Chain {
            first: Link { map, at: link_at },
            seed,
            chunk_bytes,
            text_bytes,
            entries: layout::chunk_entries(chunk_bytes, text_bytes),
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// Returns the entry with index `nth` of the chain, in which the ring file shows one open span.
    /// Returns `None` if the chunk of the file that contains it does not exist.
    pub(crate) fn entry(&self, nth: usize) -> Option<OpenEntry> {
        let (chunk, nth) = self.chunk_of(nth)?;
        let at = layout::CHUNK_HEAD_BYTES + nth * layout::OPEN_ENTRY_BYTES;
        Some(OpenEntry::new(chunk, at))
    }

    /// Returns the text area of entry `nth`, which holds the name and args of one open span.
    /// Returns `None` if the chunk of the file that contains it does not exist.
    pub(crate) fn text(&self, nth: usize) -> Option<TextArea> {
        let (chunk, nth) = self.chunk_of(nth)?;
        let texts = layout::CHUNK_HEAD_BYTES + self.entries * layout::OPEN_ENTRY_BYTES;
        let text = chunk.part(texts + nth * self.text_bytes, self.text_bytes);
        Some(TextArea::new(text))
    }

    /// Returns the mapped chunk that contains entry `nth` of the chain, and the index of the entry
    /// within that chunk. Returns `None` if the chunk does not exist.
    fn chunk_of(&self, nth: usize) -> Option<(Map, usize)> {
        let chunk = self.chunks.get(nth / self.entries)?.get()?;
        Some(((*chunk)?, nth % self.entries))
    }

    /// Returns the number of entries in all chunks that exist.
    pub(crate) fn len(&self) -> usize {
        let chunks = self.chunks.iter().map_while(|chunk| *chunk.get()?);
        chunks.count() * self.entries
    }

    /// Adds chunks until the chain has one for entry `nth`, or until the file has no room. `add`
    /// extends the ring file by the given number of bytes and returns the new mapping and its
    /// offset in the file. Callers make sure that only one thread at a time calls this.
    pub(crate) fn extend_to(&self, nth: usize, mut add: impl FnMut(usize) -> Option<(Map, usize)>) {
        let mut link = Some(self.first);
        for chunk in self.chunks.iter().take(nth / self.entries + 1) {
            let added = chunk.get_or_init(|| {
                let link = link?; // without a link, readers would not find it
                let (map, offset) = add(self.chunk_bytes)?;
                link.store(self.seed, offset, self.chunk_bytes);
                Some(map)
            });
            link = added.map(|map| Link { map, at: 0 });
        }
    }

    /// Returns true if there is nothing left to try for entry `nth`: its chunk exists, the file had
    /// no room for the chunk, or the entry is beyond the maximum length of the chain.
    pub(crate) fn is_decided(&self, nth: usize) -> bool {
        let chunk = self.chunks.get(nth / self.entries);
        chunk.is_none_or(|chunk| chunk.get().is_some())
    }

    /// Marks the chunk of entry `nth` as one for which there was no room, unless the chunk exists.
    /// Then nobody tries again to create it. Only for a chain that a single thread extends.
    pub(crate) fn give_up(&self, nth: usize) {
        if let Some(chunk) = self.chunks.get(nth / self.entries) {
            let _ = chunk.set(None); // it may already exist
        }
    }

    /// Unmaps all chunks of the chain. Nothing may use the chain any more.
    pub(crate) fn unmap(&self) {
        let chunks = self.chunks.iter().filter_map(OnceLock::get).flatten();
        chunks.for_each(|chunk| chunk.unmap());
    }
}
