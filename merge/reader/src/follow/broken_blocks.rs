//! Blocks that are incomplete or do not match, held until it is known whether they are written again (FORMAT.md §4).

use sa_format::BlockHeader;

/// Maximum number of bytes that are held. The lines of further blocks are not read.
const MOST_BYTES: usize = 1 << 20;

/// A block that is incomplete or does not match its checksum.
#[derive(Debug)]
pub(super) struct BrokenBlock {
    pub(super) header: BlockHeader,
    /// Number of the segment that contains it.
    pub(super) segment: u32,
    /// What is there of it, up to the next block header or the line in which its claimed bytes end. If the write was cut short, lines that stand outside of
    /// blocks may come after what was written.
    pub(super) bytes: Vec<u8>,
}

/// The broken blocks of a fragment whose lines were not read yet.
#[derive(Debug, Default)]
pub(super) struct BrokenBlocks {
    blocks: Vec<BrokenBlock>,
    bytes: usize,
}

impl BrokenBlocks {
    /// Returns how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds a block, unless there are too many.
    pub(super) fn hold(&mut self, block: BrokenBlock) {
        if self.bytes + block.bytes.len() <= MOST_BYTES {
            self.bytes += block.bytes.len();
            self.blocks.push(block);
        }
    }

    /// Takes out the blocks that a complete block of their slot repeats or leaves behind.
    pub(super) fn take_before(&mut self, complete: &BlockHeader) -> Vec<BrokenBlock> {
        let reached = (complete.generation, complete.positions().end);
        self.take(|broken| {
            broken.slot == complete.slot && (broken.generation, broken.from) < reached
        })
    }

    /// Takes out all blocks.
    pub(super) fn take_all(&mut self) -> Vec<BrokenBlock> {
        self.take(|_| true)
    }

    fn take(&mut self, is_wanted: impl Fn(&BlockHeader) -> bool) -> Vec<BrokenBlock> {
        let taken = self.blocks.extract_if(.., |block| is_wanted(&block.header));
        let taken: Vec<BrokenBlock> = taken.collect();
        self.bytes -= taken.iter().map(|block| block.bytes.len()).sum::<usize>();
        taken
    }
}
