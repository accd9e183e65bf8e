//! The cache for keys and values: a fixed number of blocks, each for a few tokens of one request.

/// Number of a block.
pub(crate) type BlockId = usize;

/// The blocks that nobody holds.
#[derive(Debug)]
pub(crate) struct BlockPool {
    unused: Vec<BlockId>,
    total: usize,
    block_tokens: usize,
}

impl BlockPool {
    /// A pool of `total` blocks of `block_tokens` tokens each.
    pub(crate) fn new(total: usize, block_tokens: usize) -> BlockPool {
        BlockPool {
            unused: (0..total).rev().collect(),
            total,
            block_tokens: block_tokens.max(1),
        }
    }

    /// Blocks that `tokens` tokens take.
    pub(crate) fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_tokens)
    }

    /// Blocks in all.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Blocks that nobody holds.
    pub(crate) fn free(&self) -> usize {
        self.unused.len()
    }

    /// Blocks that requests hold.
    pub(crate) fn used(&self) -> usize {
        self.total - self.unused.len()
    }

    /// Adds blocks to `table` until it holds `tokens` tokens; takes none and says false if there are too few.
    pub(crate) fn grow(&mut self, table: &mut Vec<BlockId>, tokens: usize) -> bool {
        let missing = self.blocks_for(tokens).saturating_sub(table.len());
        let Some(rest) = self.unused.len().checked_sub(missing) else {
            return false;
        };
        table.extend(self.unused.drain(rest..).rev());
        true
    }

    /// Takes all blocks of `table` back.
    pub(crate) fn release(&mut self, table: &mut Vec<BlockId>) {
        self.unused.extend(table.drain(..).rev());
    }
}
