//! The hashes of a prompt's blocks, as an engine records them (docs/time.md). Each stands for all of the prompt up to its block's end.

use super::request_moment::{OfProcess, arg, ids, request_key};
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;

/// The event that has them.
pub(crate) const NAME: &str = "request.prompt_blocks";
/// Hexadecimal digits of each hash.
const DIGITS: usize = 16;
/// Hashes that count, as in the SQL.
pub(crate) const MOST_BLOCKS: usize = 512;

/// A prompt that an engine took into its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Its engine, by the number of the process.
    pub(crate) process: usize,
    pub(crate) ts_ns: i64,
    pub(crate) request_id: String,
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    pub(crate) tokens: u64,
    /// Tokens of a block.
    pub(crate) block_tokens: u64,
    /// Full blocks.
    pub(crate) blocks: u64,
    /// The first of them, which have hashes.
    pub(crate) hashed: u64,
}

impl Prompt {
    /// Tokens of the full blocks behind those with hashes.
    pub(crate) fn tokens_without_hash(&self) -> u64 {
        (self.blocks - self.hashed) * self.block_tokens
    }

    /// The other tokens: those that count.
    pub(crate) fn counted_tokens(&self) -> u64 {
        self.tokens - self.tokens_without_hash()
    }

    /// Tokens of some of its blocks.
    pub(crate) fn tokens_of(&self, blocks: u64) -> u64 {
        blocks * self.block_tokens
    }
}

/// A block of a prompt. In the order of these, the same blocks of one engine follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PromptBlock {
    pub(crate) process: u32,
    pub(crate) hash: u64,
    /// Of all prompts.
    pub(crate) prompt: u32,
    /// Its place in the prompt, from 1.
    pub(crate) nth: u32,
}

impl Record for PromptBlock {}

/// The prompt of an event of this name, and the hashes of its blocks; `None` if it lacks an arg, or has more blocks than tokens or more hashes than blocks.
pub(crate) fn prompt(event: &PlacedEvent<'_>, of_process: OfProcess) -> Option<(Prompt, Vec<u64>)> {
    let number = |name| arg::<u64>(event, name);
    let text: &str = arg(event, "hashes")?;
    let [request_id]: [String; 1] = ids(event).try_into().ok()?;
    let hashes = hashes(text);
    let prompt = Prompt {
        process: of_process.process as usize,
        ts_ns: event.ts_ns,
        request: request_key(&request_id, of_process.run),
        request_id,
        tokens: number("prompt_tokens")?,
        block_tokens: number("block_tokens")?,
        blocks: number("blocks")?,
        hashed: hashes.len() as u64,
    };
    let fits = || {
        let hashes = text.len() / DIGITS;
        let tokens = prompt.blocks.checked_mul(prompt.block_tokens)?;
        Some(hashes as u64 <= prompt.blocks && tokens <= prompt.tokens)
    };
    (prompt.hashed > 0 && fits()?).then_some((prompt, hashes))
}

/// Those that a text has one behind the other, up to the first that is none.
fn hashes(text: &str) -> Vec<u64> {
    let hash = |digits: &[u8; DIGITS]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let is_signed = digits.starts_with('+');
        u64::from_str_radix(digits, 16).ok().filter(|_| !is_signed)
    };
    let (hashes, _) = text.as_bytes().as_chunks::<DIGITS>();
    hashes.iter().take(MOST_BLOCKS).map_while(hash).collect()
}
