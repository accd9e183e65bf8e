//! Blocks: lines reach a fragment in blocks, each with a header line and a checksum (FORMAT.md
//! §2.2).

use serde::Deserialize;
use std::io::Write;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// Beginning of every block header line.
pub const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;
/// Maximum length of a block header line in bytes.
pub const MAX_HEADER_BYTES: usize = 192;

/// Header of a block: the stream and positions that the following bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Slot whose stream the block is from.
    pub slot: u32,
    /// Generation of the stream.
    pub generation: u32,
    /// Position of the first byte.
    pub from: u64,
    /// Number of bytes in the block.
    pub len: u64,
    /// Checksum computed by [`block_sum`].
    pub sum: u64,
}

/// Computes the checksum of a block's bytes for its header. The slot, generation and position seed
/// the hash, so a header with a wrong number never matches.
pub fn block_sum(slot: u32, generation: u32, from: u64, bytes: &[u8]) -> u64 {
    let seed = from ^ (u64::from(slot) << 48) ^ (u64::from(generation) << 32);
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

impl BlockHeader {
    /// Name of the metadata record before each block.
    pub const NAME: &'static str = "sa_block";

    /// Returns the slot and generation, which identify the stream of lines that the block belongs
    /// to.
    pub fn stream(&self) -> (u32, u32) {
        (self.slot, self.generation)
    }

    /// Returns the positions of the block's bytes in their stream.
    pub fn positions(&self) -> Range<u64> {
        self.from..self.from.saturating_add(self.len)
    }

    /// Parses a block header line without its newline. Returns `None` if the line differs in any
    /// byte from what [`BlockHeader::write`] writes.
    pub fn parse(line: &[u8]) -> Option<BlockHeader> {
        if !line.starts_with(BLOCK_START) || line.len() > MAX_HEADER_BYTES {
            return None;
        }
        let Line { pid, args } = serde_json::from_slice(line).ok()?;
        let header = BlockHeader {
            slot: args.slot,
            generation: args.generation,
            from: args.from,
            len: args.len,
            sum: u64::from_str_radix(args.sum, 16).ok()?,
        };
        let mut written = Vec::with_capacity(MAX_HEADER_BYTES);
        header.write(pid, &mut written);
        (written.strip_suffix(b"\n") == Some(line)).then_some(header)
    }

    /// Appends the header line of a block of process `pid`, with its newline. The line has at most
    /// [`MAX_HEADER_BYTES`] bytes.
    pub fn write(&self, pid: u32, out: &mut impl Write) {
        let BlockHeader {
            slot,
            generation,
            from,
            len,
            sum,
        } = self;
        // Writing to a `Vec` or to a large enough buffer cannot fail.
        let _ = out.write_all(BLOCK_START);
        let _ = writeln!(
            out,
            r#"{pid},"tid":{pid},"args":{{"slot":{slot},"gen":{generation},"from":{from},"len":{len},"sum":"{sum:016x}"}}}}"#
        );
    }
}

/// A block header line.
#[derive(Deserialize)]
struct Line<'a> {
    pid: u32,
    #[serde(borrow)]
    args: Args<'a>,
}

#[derive(Deserialize)]
struct Args<'a> {
    slot: u32,
    #[serde(rename = "gen")]
    generation: u32,
    from: u64,
    len: u64,
    sum: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_header_round_trips() {
        for (small, large) in [(3, 0x0123_4567_89ab_cdef), (u32::MAX, u64::MAX)] {
            let header = BlockHeader {
                slot: small,
                generation: small / 2,
                from: large / 4,
                len: large / 2,
                sum: large,
            };
            let mut line = Vec::new();
            header.write(u32::MAX, &mut line);
            assert!(line.len() <= MAX_HEADER_BYTES);
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(BlockHeader::parse(&line), Some(header));
            assert_eq!(BlockHeader::parse(&line[..line.len() - 1]), None);
        }
    }
}
