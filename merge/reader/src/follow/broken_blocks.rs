//! Holds blocks that are incomplete or do not match their checksum until it is known whether they are written again (FORMAT.md §4).

use sa_format::BlockHeader;

/// Maximum number of bytes that are held. Further blocks are dropped.
const MOST_BYTES: usize = 1 << 20;

/// A block that is incomplete or does not match its checksum.
#[derive(Debug)]
pub(super) struct BrokenBlock {
    pub(super) header: BlockHeader,
    /// Number of the segment that contains it.
    pub(super) segment: u32,
    /// Bytes of the block in the file: up to the next block header, or to the end of the line in which the length that it claims ends. If the write
    /// was cut short, they may also contain lines that were written after it, outside of any block.
    pub(super) bytes: Vec<u8>,
}

/// Broken blocks of a fragment whose lines were not read yet.
#[derive(Debug, Default)]
pub(super) struct BrokenBlocks {
    blocks: Vec<BrokenBlock>,
    bytes: usize,
}

impl BrokenBlocks {
    /// Returns the total size of the held blocks in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a broken block until its lines are read. Drops it if the held blocks would exceed `MOST_BYTES`.
    pub(super) fn hold(&mut self, block: BrokenBlock) {
        if self.bytes + block.bytes.len() <= MOST_BYTES {
            self.bytes += block.bytes.len();
            self.blocks.push(block);
        }
    }

    /// Removes and returns the broken blocks that the recorder will not write again. They are the blocks of the same slot (the ring area of one thread)
    /// that start before the end of the complete block with header `complete`.
    pub(super) fn remove_before(&mut self, complete: &BlockHeader) -> Vec<BrokenBlock> {
        let end = (complete.generation, complete.positions().end);
        self.remove(|broken| broken.slot == complete.slot && (broken.generation, broken.from) < end)
    }

    /// Removes and returns all broken blocks that are held.
    pub(super) fn remove_all(&mut self) -> Vec<BrokenBlock> {
        self.remove(|_| true)
    }

    /// Removes and returns the held blocks whose header meets the condition.
    fn remove(&mut self, is_wanted: impl Fn(&BlockHeader) -> bool) -> Vec<BrokenBlock> {
        let removed: Vec<BrokenBlock> = self
            .blocks
            .extract_if(.., |block| is_wanted(&block.header))
            .collect();
        self.bytes -= removed.iter().map(|block| block.bytes.len()).sum::<usize>();
        removed
    }
}
