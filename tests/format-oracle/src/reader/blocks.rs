//! Block headers, and the check that the bytes after a header are the announced block (FORMAT.md §2.2).

use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fragment::line_at;

/// The first bytes of every block header.
pub(super) const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;

/// The numbers of a block header.
#[derive(Clone, Debug)]
pub(super) struct BlockHeader {
    slot: u32,
    generation: u32,
    from: u64,
    len: u64,
    sum: u64,
}

/// A block and its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) slot: u32,
    pub(super) generation: u32,
    /// Position of the first byte.
    pub(super) from: u64,
    /// Offset of its header in the file.
    pub(super) header_at: usize,
    /// The range of its bytes in the file. That of an incomplete block ends at the next block header at the latest.
    pub(super) range: Range<usize>,
    /// Bytes the header announced.
    pub(super) len: u64,
    /// True if all bytes are there, end in a newline and match the checksum.
    pub(super) complete: bool,
}

/// Returns the checksum of a block.
pub fn block_sum(slot: u32, generation: u32, from: u64, content: &[u8]) -> u64 {
    let seed = from ^ u64::from(slot) << 48 ^ u64::from(generation) << 32;
    xxh3_64_with_seed(content, seed)
}

/// Returns the line of a block header, without its newline. A header has exactly this form.
pub fn header_line(pid: u64, block: [u64; 4], sum: u64) -> String {
    let [slot, generation, from, len] = block;
    format!(
        r#"{{"ph":"M","name":"sa_block","pid":{pid},"tid":{pid},"args":{{"slot":{slot},"gen":{generation},"from":{from},"len":{len},"sum":"{sum:016x}"}}}}"#
    )
}

impl BlockHeader {
    /// Reads a line as a block header; `None` if it is another line.
    pub(super) fn parse(line: &[u8]) -> Option<BlockHeader> {
        if !line.starts_with(BLOCK_START) {
            return None;
        }
        let value: Value = serde_json::from_slice(line).ok()?;
        let number = |key: &str| value["args"][key].as_u64();
        let (slot, generation) = (number("slot")?, number("gen")?);
        let (from, len) = (number("from")?, number("len")?);
        let sum = u64::from_str_radix(value["args"]["sum"].as_str()?, 16).ok()?;
        let canonical = header_line(value["pid"].as_u64()?, [slot, generation, from, len], sum);
        (canonical.as_bytes() == line).then_some(BlockHeader {
            slot: slot.try_into().ok()?,
            generation: generation.try_into().ok()?,
            from,
            len,
            sum,
        })
    }

    /// Takes the bytes that follow the header, which is the line at `line`, as its block.
    pub(super) fn block(self, bytes: &[u8], line: &Range<usize>) -> Block {
        let at = (line.end + 1).min(bytes.len());
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        let announced = at.saturating_add(len).min(bytes.len());
        let complete = self.matches(&bytes[at..announced]);
        let end = if complete {
            announced
        } else {
            incomplete_end(bytes, at, announced)
        };
        Block {
            slot: self.slot,
            generation: self.generation,
            from: self.from,
            header_at: line.start,
            range: at..end,
            len: self.len,
            complete,
        }
    }

    fn matches(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.len
            && bytes.last() == Some(&b'\n')
            && block_sum(self.slot, self.generation, self.from, bytes) == self.sum
    }
}

impl Block {
    /// The positions the header announced.
    pub(super) fn positions(&self) -> Range<u64> {
        self.from..self.from.saturating_add(self.len)
    }

    /// The stream that the positions are of.
    pub(super) fn stream(&self) -> (u32, u32) {
        (self.slot, self.generation)
    }
}

/// An incomplete block ends before the next block header, at the announced end (but never inside a line), or with the file.
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
