//! The blocks of a fragment by their header lines alone: what lies in them is not read.

use memchr::memmem;
use sa_recorder::format::{BLOCK_START, BlockHeader};
use std::ops::Range;

/// A block as its header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Where its header line starts.
    pub(crate) start: usize,
    pub(crate) body: Range<usize>,
    pub(crate) header: BlockHeader,
}

/// Goes from block to block. What is no block is passed over.
pub(crate) struct BlockWalk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// No block starts there or behind it.
    end: usize,
}

impl<'a> BlockWalk<'a> {
    /// Begins with the first block whose header line starts at `at` or behind it.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> BlockWalk<'a> {
        BlockWalk::within(bytes, at..bytes.len())
    }

    /// Goes through the blocks whose header lines start in a stretch.
    pub(crate) fn within(bytes: &'a [u8], stretch: Range<usize>) -> BlockWalk<'a> {
        let (at, end) = (stretch.start, stretch.end);
        BlockWalk { bytes, at, end }
    }

    /// The block whose header line starts at `start`, if there is one and it is all there.
    fn block(&self, start: usize) -> Option<Block> {
        let rest = self.bytes.get(start..)?;
        if !rest.starts_with(BLOCK_START) || start > 0 && self.bytes[start - 1] != b'\n' {
            return None;
        }
        let len = memchr::memchr(b'\n', rest)?;
        let header = BlockHeader::parse(&rest[..len])?;
        let body_start = start + len + 1;
        let end = body_start.checked_add(usize::try_from(header.len).ok()?)?;
        let is_whole = end <= self.bytes.len() && self.bytes[end - 1] == b'\n';
        is_whole.then_some(Block {
            start,
            body: body_start..end,
            header,
        })
    }
}

impl Iterator for BlockWalk<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        loop {
            let rest = self.bytes.get(self.at..self.end)?;
            let padding = rest.iter().take_while(|byte| **byte == b'\n').count();
            self.at += padding;
            if self.at >= self.end {
                return None;
            }
            if let Some(block) = self.block(self.at) {
                self.at = block.body.end;
                return Some(block);
            }
            let from = self.at + 1;
            let to = (self.end + BLOCK_START.len()).min(self.bytes.len());
            self.at = from + memmem::find(self.bytes.get(from..to)?, BLOCK_START)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_recorder::format::block_sum;

    fn block(slot: u32, from: u64, body: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let header = BlockHeader {
            slot,
            generation: 0,
            from,
            len: body.len() as u64,
            sum: block_sum(slot, 0, from, body.as_bytes()),
        };
        header.write(7, &mut out);
        out.extend_from_slice(body.as_bytes());
        out
    }

    fn slots(bytes: &[u8], at: usize) -> Vec<u32> {
        let blocks = BlockWalk::from(bytes, at);
        blocks.map(|block| block.header.slot).collect()
    }

    #[test]
    fn blocks_are_found_from_anywhere() {
        let bytes = [
            b"header\n".to_vec(),
            block(0, 0, "a\n"),
            b"\n\n\n".to_vec(),
            block(1, 0, "bb\n"),
            b"plain {\"ph\":\"M\",\"name\":\"sa_block\",\"pid\":\n".to_vec(),
            block(2, 0, "c\n"),
        ]
        .concat();
        let second = 7 + block(0, 0, "a\n").len() + 3;
        for at in 0..=bytes.len() {
            let expected: &[u32] = match at {
                0..=7 => &[0, 1, 2],
                at if at <= second => &[1, 2],
                at if at <= bytes.len() - block(2, 0, "c\n").len() => &[2],
                _ => &[],
            };
            assert_eq!(slots(&bytes, at), expected, "from {at}");
        }
    }

    #[test]
    fn a_block_that_is_not_all_there_is_passed_over() {
        let whole = block(1, 0, "a\nb\n");
        for cut in 1..whole.len() {
            let bytes = [&whole[..whole.len() - cut], b"\n", &block(2, 0, "c\n")].concat();
            let found = slots(&bytes, 0);
            assert!(
                found.ends_with(&[2]) || found == [1],
                "cut {cut}: {found:?}"
            );
        }
    }
}
