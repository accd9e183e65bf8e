//! Block headers, and the check of the bytes after a header against the announced block (FORMAT.md §2.2).

use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fragment::line_at;

/// First bytes of every block header.
pub(super) const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;

/// A block with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) slot: u32,
    pub(super) generation: u32,
    /// Position of the first byte.
    pub(super) from: u64,
    /// Offset of the header in the file.
    pub(super) header_at: usize,
    /// Range of the block's bytes in the file. For an incomplete block, it ends no later than the next block header.
    pub(super) range: Range<usize>,
    /// Number of bytes that the header announced.
    pub(super) len: u64,
    /// True if all bytes exist, end in a newline and match the checksum.
    pub(super) complete: bool,
}

/// Returns the checksum of a block.
pub fn block_sum(slot: u32, generation: u32, from: u64, content: &[u8]) -> u64 {
    let seed = from ^ u64::from(slot) << 48 ^ u64::from(generation) << 32;
    xxh3_64_with_seed(content, seed)
}

/// Returns a block header's line without the newline. Headers have exactly this form.
pub fn header_line(pid: u64, block: [u64; 4], sum: u64) -> String {
    let [slot, generation, from, len] = block;
    format!(
        r#"{{"ph":"M","name":"sa_block","pid":{pid},"tid":{pid},"args":{{"slot":{slot},"gen":{generation},"from":{from},"len":{len},"sum":"{sum:016x}"}}}}"#
    )
}

impl Block {
    /// Reads the line at `line` as a block header, and the following bytes as its block. Returns `None` if the line is no block header.
    pub(super) fn read(bytes: &[u8], line: &Range<usize>) -> Option<Block> {
        let header = &bytes[line.clone()];
        if !header.starts_with(BLOCK_START) || line.end == bytes.len() {
            return None;
        }
        let value: Value = serde_json::from_slice(header).ok()?;
        let number = |key: &str| value["args"][key].as_u64();
        let numbers = [
            number("slot")?,
            number("gen")?,
            number("from")?,
            number("len")?,
        ];
        let sum = u64::from_str_radix(value["args"]["sum"].as_str()?, 16).ok()?;
        if header_line(value["pid"].as_u64()?, numbers, sum).as_bytes() != header {
            return None;
        }
        let [slot, generation, from, len] = numbers;
        let (slot, generation) = (slot.try_into().ok()?, generation.try_into().ok()?);
        let at = line.end + 1;
        let announced = at.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        let announced = announced.min(bytes.len());
        let content = &bytes[at..announced];
        let complete = content.len() as u64 == len
            && content.ends_with(b"\n")
            && block_sum(slot, generation, from, content) == sum;
        let end = match complete {
            true => announced,
            false => incomplete_end(bytes, at, announced),
        };
        Some(Block {
            slot,
            generation,
            from,
            header_at: line.start,
            range: at..end,
            len,
            complete,
        })
    }

    /// Returns the positions that the header announced.
    pub(super) fn positions(&self) -> Range<u64> {
        self.from..self.from.saturating_add(self.len)
    }

    /// Returns the stream to which the positions belong.
    pub(super) fn stream(&self) -> (u32, u32) {
        (self.slot, self.generation)
    }
}

/// Returns the end of an incomplete block: before the next block header, at the announced end but not inside a line, or at the end of the file.
fn incomplete_end(bytes: &[u8], at: usize, announced: usize) -> usize {
    let mut next = at;
    while next < announced {
        let line = line_at(bytes, next);
        if bytes[line.clone()].starts_with(BLOCK_START) {
            return next;
        }
        next = (line.end + 1).min(bytes.len());
    }
    next
}
