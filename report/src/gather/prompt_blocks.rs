//! Hashes of a prompt's blocks, as an engine records them (docs/time.md). Each hash identifies the prompt up to the end
//! of its block.

use super::request_moment::{ProcessRun, arg, ids, request_key};
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;

/// Name of the event that contains the hashes.
pub(crate) const NAME: &str = "request.prompt_blocks";
/// Number of hexadecimal digits of a hash.
const DIGITS: usize = 16;
/// Maximum number of hashes that are read per prompt, as in the SQL views.
pub(crate) const MOST_BLOCKS: usize = 512;

/// A prompt that an engine put into its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Process number of the engine.
    pub(crate) process: usize,
    pub(crate) ts_ns: i64,
    pub(crate) request_id: String,
    /// Hash of the request's run and id.
    pub(crate) request: u64,
    pub(crate) tokens: u64,
    /// Number of tokens per block.
    pub(crate) block_tokens: u64,
    /// Number of full blocks.
    pub(crate) blocks: u64,
    /// Number of leading blocks with hashes.
    pub(crate) hashed: u64,
}

impl Prompt {
    /// Returns the number of prompt tokens in full blocks without a recorded hash, which come after the hashed blocks.
    pub(crate) fn tokens_without_hash(&self) -> u64 {
        (self.blocks - self.hashed) * self.block_tokens
    }

    /// Returns the number of prompt tokens that are not in a full block without a hash. Only these tokens count for
    /// prefixes.
    pub(crate) fn counted_tokens(&self) -> u64 {
        self.tokens - self.tokens_without_hash()
    }

    /// Returns the number of tokens in `blocks` full blocks of the prompt.
    pub(crate) fn tokens_in(&self, blocks: u64) -> u64 {
        blocks * self.block_tokens
    }
}

/// A block of a prompt. Sorted, equal blocks of one engine follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PromptBlock {
    pub(crate) process: u32,
    pub(crate) hash: u64,
    /// Number of the prompt among all prompts.
    pub(crate) prompt: u32,
    /// Position in the prompt, counted from 1.
    pub(crate) nth: u32,
}

impl Record for PromptBlock {}

/// Returns the prompt that an event with block hashes describes, and the hashes of its blocks. Returns `None` if an arg
/// is missing, if the event does not name exactly one request, if it has no valid hash, if the blocks have more tokens
/// than the prompt, or if there are more hashes than blocks.
pub(crate) fn prompt(
    event: &PlacedEvent<'_>,
    process_run: ProcessRun,
) -> Option<(Prompt, Vec<u64>)> {
    let number = |name| arg::<u64>(event, name);
    let text: &str = arg(event, "hashes")?;
    let [request_id]: [String; 1] = ids(event).try_into().ok()?;
    let hashes = hashes(text);
    let prompt = Prompt {
        process: process_run.process as usize,
        ts_ns: event.ts_ns,
        request: request_key(&request_id, process_run.run),
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

/// Parses the block hashes in a text of hexadecimal numbers with 16 digits each, up to the first invalid one and at
/// most [`MOST_BLOCKS`].
fn hashes(text: &str) -> Vec<u64> {
    let hash = |digits: &[u8; DIGITS]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let is_signed = digits.starts_with('+');
        u64::from_str_radix(digits, 16).ok().filter(|_| !is_signed)
    };
    let (hashes, _) = text.as_bytes().as_chunks::<DIGITS>();
    hashes.iter().take(MOST_BLOCKS).map_while(hash).collect()
}
