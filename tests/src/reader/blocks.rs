//! Block headers, and whether the bytes after one are the block it announces (FORMAT.md §2.2).

use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fragment::line_at;

/// How every block header starts.
pub(super) const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block""#;

/// What a block header announces.
#[derive(Clone, Debug)]
pub(super) struct BlockHeader {
    slot: u64,
    generation: u64,
    from: u64,
    len: usize,
    sum: u64,
}

/// A block as it stands in the file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) slot: u64,
    pub(super) generation: u64,
    /// Position of the first byte.
    pub(super) from: u64,
    /// Where its bytes are in the file; of an incomplete block, up to the next block header at most.
    pub(super) range: Range<usize>,
    /// Bytes the header announced.
    pub(super) len: usize,
    /// Whether all bytes are there, end in a newline and match the checksum.
    pub(super) complete: bool,
}

impl BlockHeader {
    /// Reads a line as a block header; `None` if it is another line.
    pub(super) fn parse(line: &[u8]) -> Option<BlockHeader> {
        if !line.starts_with(BLOCK_START) {
            return None;
        }
        let value: Value = serde_json::from_slice(line).ok()?;
        let args = &value["args"];
        let number = |key: &str| args[key].as_u64();
        let sum = u64::from_str_radix(args["sum"].as_str()?, 16).ok()?;
        let len = usize::try_from(number("len")?).ok()?;
        Some(BlockHeader {
            slot: number("slot")?,
            generation: number("gen")?,
            from: number("from")?,
            len,
            sum,
        })
    }
}

impl Block {
    /// Takes the bytes at `at` as the block of `header`.
    pub(super) fn take(header: &BlockHeader, bytes: &[u8], at: usize) -> Block {
        let at = at.min(bytes.len());
        let announced = at.saturating_add(header.len).min(bytes.len());
        let complete = header.matches(&bytes[at..announced]);
        let end = if complete {
            announced
        } else {
            incomplete_end(bytes, at, announced)
        };
        let (slot, generation, from) = (header.slot, header.generation, header.from);
        Block {
            slot,
            generation,
            from,
            range: at..end,
            len: header.len,
            complete,
        }
    }

    /// The positions the header announced.
    pub(super) fn positions(&self) -> Range<u64> {
        self.from
            ..self
                .from
                .saturating_add(u64::try_from(self.len).unwrap_or(u64::MAX))
    }
}

impl BlockHeader {
    fn matches(&self, bytes: &[u8]) -> bool {
        let seed = self.from ^ self.slot.wrapping_shl(48) ^ self.generation.wrapping_shl(32);
        bytes.len() == self.len
            && bytes.last() == Some(&b'\n')
            && xxh3_64_with_seed(bytes, seed) == self.sum
    }
}

/// An incomplete block ends before the next block header, at the announced end (but never inside a line), or with the file.
fn incomplete_end(bytes: &[u8], at: usize, announced: usize) -> usize {
    let mut next = at;
    while next < announced {
        let line = line_at(bytes, next);
        if BlockHeader::parse(&bytes[line.clone()]).is_some() {
            return next;
        }
        next = (line.end + 1).min(bytes.len());
    }
    next
}
