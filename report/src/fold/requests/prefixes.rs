//! The blocks of prompts → the prefixes that they share.
//!
//! A hash stands for a prompt up to its block's end. So prompts with the same hash have the same way from the root of a radix tree, and the blocks of one number of
//! prompts, one behind the other, are a node of it. No tree is built: blocks are sorted by hash, those of several prompts then by prompt, both beyond memory.

use super::Scheduling;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::statistics::quantiles::Quantiles;
use crate::table::{Prefix, Prefixes, RecordedProcess, TokenQuantiles};
use std::collections::HashMap;
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter};

/// Prefixes that a report has.
const MOST_PREFIXES: usize = 100;

/// A block of several prompts. In the order of these, the blocks of a prompt follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SharedBlock {
    prompt: u32,
    nth: u32,
    /// Prompts that have it.
    requests: u32,
    hash: u64,
    /// Whether an earlier prompt has it: 0 or 1.
    is_repeated: u32,
}

impl Record for SharedBlock {}

/// The prompts whose blocks have hashes.
pub(crate) struct HashedPrompts<'a> {
    pub(crate) prompts: &'a [Prompt],
    pub(crate) blocks: &'a Sorted<PromptBlock>,
    /// All processes, of which the engines are some.
    pub(crate) processes: &'a [RecordedProcess],
}

/// What prompts have in common. `shared` takes the blocks that several have.
pub(crate) fn prefixes(
    hashed: &HashedPrompts<'_>,
    scheduling: &Scheduling,
    mut shared: Sorter<'_, SharedBlock>,
) -> io::Result<Prefixes> {
    let mut tree = RadixTree::new(hashed, scheduling);
    put_shared(hashed, tree.is_scheduled, &mut shared)?;
    let shared = shared.finish()?;
    shared.iter().for_each(|block| tree.take(*block));
    Ok(tree.finish(scheduling.scheduled))
}

/// The blocks that several scheduled prompts of an engine have, each with whether an earlier one has it: one that was queued earlier, or at one time has the lesser id.
fn put_shared(
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
        let same = || same.iter().filter(|of| is_scheduled[of.prompt as usize]);
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

/// What is known of a node while prompts are taken.
#[derive(Debug, Default)]
struct Node {
    requests: u64,
    tokens: u64,
    own_tokens: u64,
    hit_tokens: Option<u64>,
}

/// Takes the shared blocks of each prompt.
struct RadixTree<'a> {
    prompts: &'a [Prompt],
    processes: &'a [RecordedProcess],
    /// Whether its engine scheduled it. Others were never computed, and do not count.
    is_scheduled: &'a [bool],
    /// What the cache had of each, as far as its blocks have hashes.
    cached: Vec<Option<u64>>,
    /// Blocks of each that an earlier one has.
    repeated: Vec<u64>,
    /// By engine and the hash of the last block.
    nodes: HashMap<(usize, u64), Node>,
    /// The blocks of a prompt that as many prompts have: the first and the last.
    run: Option<(SharedBlock, SharedBlock)>,
}

impl<'a> RadixTree<'a> {
    fn new(hashed: &HashedPrompts<'a>, scheduling: &'a Scheduling) -> RadixTree<'a> {
        let prompts = hashed.prompts;
        let cached =
            |(of, tokens): (&Prompt, &Option<u64>)| Some((*tokens)?.min(of.tokens_of(of.hashed)));
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

    fn take(&mut self, block: SharedBlock) {
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

    /// All of a prompt's blocks of a node are there.
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
        let sum = |of: &dyn Fn(usize, &Prompt) -> u64| {
            counted().fold(0_u64, |sum, (nth, prompt)| {
                sum.saturating_add(of(nth, prompt))
            })
        };
        let seen = |nth: usize, prompt: &Prompt| prompt.tokens_of(self.repeated[nth]);
        let counted_tokens = sum(&|_, prompt| prompt.counted_tokens());
        let shared_tokens = sum(&seen);
        let cached_tokens = sum(&|nth, _| self.cached[nth].unwrap_or(0));
        let of_tokens = sum(&|nth, prompt| self.cached[nth].map_or(0, |_| prompt.counted_tokens()));
        let unique = counted().map(|(nth, prompt)| {
            i64::try_from(prompt.counted_tokens() - seen(nth, prompt)).unwrap_or(i64::MAX)
        });
        Prefixes {
            requests,
            n: counted().count() as u64,
            prompt_tokens: sum(&|_, prompt| prompt.tokens),
            tokens_without_hash: sum(&|_, prompt| prompt.tokens_without_hash()),
            shared_tokens,
            shared_share: share(shared_tokens, counted_tokens).unwrap_or(0.0),
            cached_tokens,
            cached_share: share(cached_tokens, of_tokens),
            unique: tokens(Quantiles::of(unique.collect())),
            shared: self.nodes.len() as u64,
            prefixes: listed(self.nodes, counted_tokens, self.processes),
        }
    }
}

/// `None` of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn tokens(of: Quantiles) -> TokenQuantiles {
    TokenQuantiles {
        mean: of.mean_ns,
        p50: of.p50_ns,
        p90: of.p90_ns,
        p95: of.p95_ns,
        p99: of.p99_ns,
        max: of.max_ns.cast_unsigned(),
    }
}

/// Those that save most.
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
    let pid = |of: &Prefix| processes.get(of.engine).map(|process| process.pid);
    let mut prefixes: Vec<Prefix> = nodes.into_iter().map(prefix).collect();
    prefixes.sort_by(|one, other| {
        let saves = (other.saved_tokens, other.tokens).cmp(&(one.saved_tokens, one.tokens));
        saves.then_with(|| {
            let places = [one, other].map(|of| (&of.prefix, pid(of), of.engine));
            places[0].cmp(&places[1])
        })
    });
    prefixes.truncate(MOST_PREFIXES);
    prefixes
}
