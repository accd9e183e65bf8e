//! The cache for keys and values, which has a fixed number of blocks. Each block is for a few tokens of one request.

/// Number of a block.
pub(crate) type BlockId = usize;

/// The pool of unused blocks.
#[derive(Debug)]
pub(crate) struct BlockPool {
    unused: Vec<BlockId>,
    total: usize,
    block_tokens: usize,
}

impl BlockPool {
    /// Creates a pool of `total` blocks of `block_tokens` tokens each.
    pub(crate) fn new(total: usize, block_tokens: usize) -> BlockPool {
        BlockPool {
            unused: (0..total).rev().collect(),
            total,
            block_tokens: block_tokens.max(1),
        }
    }

    /// Returns the number of blocks for `tokens` tokens.
    pub(crate) fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_tokens)
    }

    /// Returns the total number of blocks.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of unused blocks.
    pub(crate) fn free(&self) -> usize {
        self.unused.len()
    }

    /// Returns the number of blocks that requests use.
    pub(crate) fn used(&self) -> usize {
        self.total - self.unused.len()
    }

    /// Adds blocks to `table` until it has room for `tokens` tokens. If there are too few unused blocks, adds none and returns false.
    pub(crate) fn grow(&mut self, table: &mut Vec<BlockId>, tokens: usize) -> bool {
        let missing = self.blocks_for(tokens).saturating_sub(table.len());
        let Some(rest) = self.unused.len().checked_sub(missing) else {
            return false;
        };
        table.extend(self.unused.drain(rest..).rev());
        true
    }

    /// Returns all blocks in `table` to the pool.
    pub(crate) fn release(&mut self, table: &mut Vec<BlockId>) {
        self.unused.extend(table.drain(..).rev());
    }
}
