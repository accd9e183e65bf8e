//! Finds the prefixes that prompts share, from the hashes of their blocks.
//!
//! A hash identifies a prompt up to the end of a block. So prompts with the same hash share the path from the root of a
//! radix tree. Consecutive blocks that are shared by the same number of prompts form a node of it. No tree is built:
//! blocks are sorted by hash, and the shared ones again by prompt. Both sorts use temporary files.

use super::Scheduling;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::statistics::quantiles::Quantiles;
use crate::table::{Prefix, Prefixes, RecordedProcess, TokenQuantiles};
use std::collections::HashMap;
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter};

/// Maximum number of prefixes in a report.
const MOST_PREFIXES: usize = 100;

/// A block that several prompts share. Sorted, the blocks of a prompt follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SharedBlock {
    prompt: u32,
    nth: u32,
    /// Number of prompts that contain the block.
    requests: u32,
    hash: u64,
    /// 1 if an earlier prompt contains the block, otherwise 0.
    is_repeated: u32,
}

impl Record for SharedBlock {}

/// The prompts whose blocks have hashes.
pub(crate) struct HashedPrompts<'a> {
    pub(crate) prompts: &'a [Prompt],
    pub(crate) blocks: &'a Sorted<PromptBlock>,
    /// All processes of the run, including the engines.
    pub(crate) processes: &'a [RecordedProcess],
}

/// Returns what prompts have in common. `shared` sorts the blocks that several prompts contain.
pub(crate) fn prefixes(
    hashed: &HashedPrompts<'_>,
    scheduling: &Scheduling,
    mut shared: Sorter<'_, SharedBlock>,
) -> io::Result<Prefixes> {
    let mut tree = RadixTree::new(hashed, scheduling);
    find_shared(hashed, tree.is_scheduled, &mut shared)?;
    let shared = shared.finish()?;
    shared.iter().for_each(|block| tree.add(*block));
    Ok(tree.finish(scheduling.scheduled))
}

/// Finds the blocks that several scheduled prompts of an engine contain. A prompt is earlier than another if it was
/// queued earlier, or if it was queued at the same time and its id is smaller.
fn find_shared(
    hashed: &HashedPrompts<'_>,
    is_scheduled: &[bool],
    shared: &mut Sorter<'_, SharedBlock>,
) -> io::Result<()> {
    let queued = |block: &PromptBlock| {
        let prompt = &hashed.prompts[block.prompt as usize];
        (prompt.ts_ns, &prompt.request_id, block.prompt)
    };
    let is_same = |one: &PromptBlock, next: &PromptBlock| {
        (one.process, one.hash) == (next.process, next.hash)
    };
    for same in hashed.blocks.chunk_by(is_same) {
        let same = || {
            same.iter()
                .filter(|block| is_scheduled[block.prompt as usize])
        };
        let requests = u32::try_from(same().count()).map_err(io::Error::other)?;
        let first = same().min_by_key(|block| queued(block));
        shared.extend(same().filter(|_| requests > 1).map(|block| SharedBlock {
            prompt: block.prompt,
            nth: block.nth,
            requests,
            hash: block.hash,
            is_repeated: u32::from(Some(block) != first),
        }))?;
    }
    Ok(())
}

/// State of a node while prompts are added.
#[derive(Debug, Default)]
struct Node {
    requests: u64,
    tokens: u64,
    own_tokens: u64,
    hit_tokens: Option<u64>,
}

/// Collects the shared blocks of each prompt into nodes of a radix tree.
struct RadixTree<'a> {
    prompts: &'a [Prompt],
    processes: &'a [RecordedProcess],
    /// For each prompt, true if its engine scheduled it. Other prompts were never computed, and do not count.
    is_scheduled: &'a [bool],
    /// For each prompt, its number of cached tokens, limited to blocks with hashes.
    cached: Vec<Option<u64>>,
    /// For each prompt, the number of blocks that an earlier prompt contains.
    repeated: Vec<u64>,
    /// Nodes by engine and by the hash of their last block.
    nodes: HashMap<(usize, u64), Node>,
    /// First and last of the current prompt's consecutive blocks that the same number of prompts share.
    run: Option<(SharedBlock, SharedBlock)>,
}

impl<'a> RadixTree<'a> {
    fn new(hashed: &HashedPrompts<'a>, scheduling: &'a Scheduling) -> RadixTree<'a> {
        let prompts = hashed.prompts;
        let cached = |(prompt, tokens): (&Prompt, &Option<u64>)| {
            Some((*tokens)?.min(prompt.tokens_in(prompt.hashed)))
        };
        let cached_tokens = prompts.iter().zip(&scheduling.cached_tokens);
        RadixTree {
            prompts,
            processes: hashed.processes,
            is_scheduled: &scheduling.is_scheduled,
            cached: cached_tokens.map(cached).collect(),
            repeated: vec![0; prompts.len()],
            nodes: HashMap::new(),
            run: None,
        }
    }

    fn add(&mut self, block: SharedBlock) {
        self.repeated[block.prompt as usize] += u64::from(block.is_repeated);
        self.run = match self.run {
            Some((first, last))
                if (last.prompt, last.requests) == (block.prompt, block.requests) =>
            {
                Some((first, block))
            }
            _ => {
                self.end_run();
                Some((block, block))
            }
        };
    }

    /// Adds the current run of blocks to its node.
    fn end_run(&mut self) {
        let Some((first, last)) = self.run.take() else {
            return;
        };
        let nth = last.prompt as usize;
        let prompt = &self.prompts[nth];
        let to = |block: u32| u64::from(block).saturating_mul(prompt.block_tokens);
        let (from, tokens) = (to(first.nth - 1), to(last.nth));
        let node = self.nodes.entry((prompt.process, last.hash)).or_default();
        node.requests = last.requests.into();
        node.tokens = tokens;
        node.own_tokens = tokens - from;
        if let Some(cached) = self.cached[nth].filter(|_| last.is_repeated > 0) {
            let hit = cached.clamp(from, tokens) - from;
            node.hit_tokens = Some(node.hit_tokens.unwrap_or(0).saturating_add(hit));
        }
    }

    fn finish(mut self, requests: u64) -> Prefixes {
        self.end_run();
        let prompts = self.prompts.iter().enumerate();
        let counted = || prompts.clone().filter(|(nth, _)| self.is_scheduled[*nth]);
        let sum = |count: &dyn Fn(usize, &Prompt) -> u64| {
            counted().fold(0_u64, |sum, (nth, prompt)| {
                sum.saturating_add(count(nth, prompt))
            })
        };
        let repeated = |nth: usize, prompt: &Prompt| prompt.tokens_in(self.repeated[nth]);
        let counted_tokens = sum(&|_, prompt| prompt.counted_tokens());
        let shared_tokens = sum(&repeated);
        let cached_tokens = sum(&|nth, _| self.cached[nth].unwrap_or(0));
        let cacheable_tokens =
            sum(&|nth, prompt| self.cached[nth].map_or(0, |_| prompt.counted_tokens()));
        let unique = counted().map(|(nth, prompt)| {
            i64::try_from(prompt.counted_tokens() - repeated(nth, prompt)).unwrap_or(i64::MAX)
        });
        Prefixes {
            requests,
            n: counted().count() as u64,
            prompt_tokens: sum(&|_, prompt| prompt.tokens),
            tokens_without_hash: sum(&|_, prompt| prompt.tokens_without_hash()),
            shared_tokens,
            shared_share: share(shared_tokens, counted_tokens).unwrap_or(0.0),
            cached_tokens,
            cached_share: share(cached_tokens, cacheable_tokens),
            unique: tokens(Quantiles::from_values(unique.collect())),
            shared: self.nodes.len() as u64,
            prefixes: listed(self.nodes, counted_tokens, self.processes),
        }
    }
}

/// Returns `None` if `whole` is 0.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn tokens(figures: Quantiles) -> TokenQuantiles {
    TokenQuantiles {
        mean: figures.mean_ns,
        p50: figures.p50_ns,
        p90: figures.p90_ns,
        p95: figures.p95_ns,
        p99: figures.p99_ns,
        max: figures.max_ns.cast_unsigned(),
    }
}

/// Returns the prefixes that save the most tokens.
fn listed(
    nodes: HashMap<(usize, u64), Node>,
    counted_tokens: u64,
    processes: &[RecordedProcess],
) -> Vec<Prefix> {
    let prefix = |((engine, hash), node): ((usize, u64), Node)| {
        let saved_tokens = (node.requests - 1).saturating_mul(node.own_tokens);
        Prefix {
            engine,
            prefix: format!("{hash:016x}"),
            requests: node.requests,
            tokens: node.tokens,
            own_tokens: node.own_tokens,
            saved_tokens,
            saved_share: share(saved_tokens, counted_tokens).unwrap_or(0.0),
            hit_tokens: node.hit_tokens,
        }
    };
    let pid = |prefix: &Prefix| processes.get(prefix.engine).map(|process| process.pid);
    let mut prefixes: Vec<Prefix> = nodes.into_iter().map(prefix).collect();
    prefixes.sort_by(|one, other| {
        let saves = (other.saved_tokens, other.tokens).cmp(&(one.saved_tokens, one.tokens));
        saves.then_with(|| {
            let places = [one, other].map(|prefix| (&prefix.prefix, pid(prefix), prefix.engine));
            places[0].cmp(&places[1])
        })
    });
    prefixes.truncate(MOST_PREFIXES);
    prefixes
}
