//! Blocks: lines reach a fragment in blocks, each with a header line and a checksum (FORMAT.md §2.2).

use std::ops::Range;
use twox_hash::XxHash3_64;

/// How every block header line starts.
pub const BLOCK_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;
/// Maximum length of a block header line in bytes.
pub const MAX_HEADER_BYTES: usize = 192;

/// A block header: where in a slot's stream the following bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Slot whose stream the block is from.
    pub slot: u32,
    /// Generation of the stream.
    pub generation: u32,
    /// Position of the first byte.
    pub from: u64,
    /// Bytes in the block.
    pub len: u64,
    /// Checksum as [`block_sum`] computes it.
    pub sum: u64,
}

/// Computes the checksum of a block's bytes; the position is part of it, so a header with a wrong number never matches.
pub fn block_sum(slot: u32, generation: u32, from: u64, bytes: &[u8]) -> u64 {
    let seed = from ^ (u64::from(slot) << 48) ^ (u64::from(generation) << 32);
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

impl BlockHeader {
    /// Name of the metadata record before each block.
    pub const NAME: &'static str = "sa_block";

    /// Returns the slot and generation of the stream.
    pub fn stream(&self) -> (u32, u32) {
        (self.slot, self.generation)
    }

    /// Returns the positions of the bytes in their stream.
    pub fn positions(&self) -> Range<u64> {
        self.from..self.from.saturating_add(self.len)
    }

    /// Parses a block header line (without its newline); `None` if it is not exactly one.
    pub fn parse(line: &[u8]) -> Option<BlockHeader> {
        let mut rest = Cursor(line.strip_prefix(BLOCK_START)?);
        let pid = rest.number()?;
        rest.literal(br#","tid":"#)?;
        if rest.number()? != pid {
            return None;
        }
        rest.literal(br#","args":{"slot":"#)?;
        let slot = u32::try_from(rest.number()?).ok()?;
        rest.literal(br#","gen":"#)?;
        let generation = u32::try_from(rest.number()?).ok()?;
        rest.literal(br#","from":"#)?;
        let from = rest.number()?;
        rest.literal(br#","len":"#)?;
        let len = rest.number()?;
        rest.literal(br#","sum":""#)?;
        let sum = rest.hex16()?;
        rest.literal(br#""}}"#)?;
        rest.0.is_empty().then_some(BlockHeader {
            slot,
            generation,
            from,
            len,
            sum,
        })
    }

    /// Appends the header line of a block of process `pid`, with its newline.
    pub fn write(&self, pid: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(BLOCK_START);
        let mut digits = itoa::Buffer::new();
        let mut put = |key: &[u8], value: u64| {
            out.extend_from_slice(key);
            out.extend_from_slice(digits.format(value).as_bytes());
        };
        put(b"", u64::from(pid));
        put(br#","tid":"#, u64::from(pid));
        put(br#","args":{"slot":"#, u64::from(self.slot));
        put(br#","gen":"#, u64::from(self.generation));
        put(br#","from":"#, self.from);
        put(br#","len":"#, self.len);
        out.extend_from_slice(br#","sum":""#);
        out.extend(
            (0..16)
                .rev()
                .map(|nibble| hex_digit(self.sum >> (4 * nibble))),
        );
        out.extend_from_slice(b"\"}}\n");
    }
}

fn hex_digit(value: u64) -> u8 {
    b"0123456789abcdef"[(value & 15) as usize]
}

/// Reads literals and numbers off the front of a byte string.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = std::str::from_utf8(&self.0[..digits]).ok()?;
        self.0 = &self.0[digits..];
        text.parse().ok()
    }

    fn hex16(&mut self) -> Option<u64> {
        let (text, rest) = self.0.split_at_checked(16)?;
        if !text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return None;
        }
        self.0 = rest;
        u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_header_round_trips() {
        let longest = BlockHeader {
            slot: u32::MAX,
            generation: u32::MAX,
            from: u64::MAX,
            len: u64::MAX,
            sum: u64::MAX,
        };
        let usual = BlockHeader {
            slot: 3,
            generation: 1,
            from: 1 << 40,
            len: 32768,
            sum: 0x0123_4567_89ab_cdef,
        };
        for header in [usual, longest] {
            let mut line = Vec::new();
            header.write(u32::MAX, &mut line);
            assert!(line.len() <= MAX_HEADER_BYTES);
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(BlockHeader::parse(&line), Some(header));
        }
    }

    #[test]
    fn block_header_cut_anywhere_is_none() {
        let mut line = Vec::new();
        BlockHeader {
            slot: 0,
            generation: 0,
            from: 0,
            len: 1,
            sum: 0,
        }
        .write(1, &mut line);
        line.pop();
        for end in 0..line.len() {
            assert_eq!(BlockHeader::parse(&line[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn block_sum_depends_on_the_position() {
        assert_ne!(block_sum(0, 0, 0, b"x\n"), block_sum(0, 0, 1, b"x\n"));
        assert_ne!(block_sum(0, 0, 0, b"x\n"), block_sum(1, 0, 0, b"x\n"));
    }
}
