//! The blocks of prompts → the prefixes that they share.
//!
//! A hash stands for a prompt up to its block's end. So prompts with the same hash have the same way from the root of a radix tree, and the blocks of one number of
//! prompts, one behind the other, are a node of it. No tree is built: blocks are sorted by hash, those of several prompts then by prompt, both beyond memory.

use super::RequestFacts;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::quantiles::Quantiles;
use crate::table::recorded::RecordedProcess;
use crate::table::request::prefixes::{Prefix, Prefixes, TokenQuantiles};
use std::collections::HashMap;
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter, long_at, word_at};

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
    again: u32,
}

impl Record for SharedBlock {
    const BYTES: usize = 24;

    fn store(&self, out: &mut Vec<u8>) {
        for word in [self.prompt, self.nth, self.requests, self.again] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.hash.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        SharedBlock {
            prompt: word_at(bytes, 0),
            nth: word_at(bytes, 4),
            requests: word_at(bytes, 8),
            again: word_at(bytes, 12),
            hash: long_at(bytes, 16),
        }
    }
}

/// What engines tell of prompts.
pub(crate) struct ToldPrompts<'a> {
    pub(crate) prompts: &'a [Prompt],
    pub(crate) blocks: &'a Sorted<PromptBlock>,
    /// All processes, of which the engines are some.
    pub(crate) processes: &'a [RecordedProcess],
}

/// What prompts have in common. `shared` takes the blocks that several have.
pub(crate) fn prefixes(
    told: &ToldPrompts<'_>,
    requests: &RequestFacts,
    mut shared: Sorter<'_, SharedBlock>,
) -> io::Result<Prefixes> {
    put_shared(told.prompts, told.blocks, &mut shared)?;
    let mut tree = RadixTree::new(told, requests);
    shared.finish()?.each(|block| {
        tree.take(block);
        Ok(())
    })?;
    Ok(tree.finish())
}

/// The blocks that several prompts of an engine have, each with whether an earlier one has it: one that was queued earlier, or at one time has the lesser id.
fn put_shared(
    prompts: &[Prompt],
    blocks: &Sorted<PromptBlock>,
    shared: &mut Sorter<'_, SharedBlock>,
) -> io::Result<()> {
    let queued = |block: &PromptBlock| {
        let prompt = &prompts[block.prompt as usize];
        (prompt.ts_ns, &prompt.request_id, block.prompt)
    };
    let mut put = |same: &[PromptBlock]| {
        let first = same.iter().min_by_key(|block| queued(block));
        let requests = u32::try_from(same.len()).map_err(io::Error::other)?;
        same.iter().filter(|_| requests > 1).try_for_each(|block| {
            shared.push(SharedBlock {
                prompt: block.prompt,
                nth: block.nth,
                requests,
                hash: block.hash,
                again: u32::from(Some(block) != first),
            })
        })
    };
    let mut same: Vec<PromptBlock> = Vec::new();
    blocks.each(|block| {
        let is_same = |last: &PromptBlock| (last.process, last.hash) == (block.process, block.hash);
        if !same.last().is_none_or(is_same) {
            put(&same)?;
            same.clear();
        }
        same.push(block);
        Ok(())
    })?;
    put(&same)
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
    /// What the cache had of each.
    cached: Vec<Option<u64>>,
    /// Blocks of each that an earlier one has.
    again: Vec<u64>,
    /// By engine and the hash of the last block.
    nodes: HashMap<(usize, u64), Node>,
    /// The blocks of a prompt that as many prompts have: the first and the last.
    run: Option<(SharedBlock, SharedBlock)>,
}

impl<'a> RadixTree<'a> {
    fn new(told: &ToldPrompts<'a>, requests: &RequestFacts) -> RadixTree<'a> {
        let (prompts, cached) = (told.prompts, told.prompts.iter());
        RadixTree {
            prompts,
            processes: told.processes,
            cached: cached
                .map(|prompt| requests.cached_tokens(&prompt.request_id))
                .collect(),
            again: vec![0; prompts.len()],
            nodes: HashMap::new(),
            run: None,
        }
    }

    fn take(&mut self, block: SharedBlock) {
        self.again[block.prompt as usize] += u64::from(block.again);
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
        if let Some(cached) = self.cached[nth].filter(|_| last.again > 0) {
            let hit = cached.clamp(from, tokens) - from;
            node.hit_tokens = Some(node.hit_tokens.unwrap_or(0).saturating_add(hit));
        }
    }

    fn finish(mut self) -> Prefixes {
        self.end_run();
        let sum = |of: &dyn Fn(usize, &Prompt) -> u64| {
            let each = self.prompts.iter().enumerate();
            each.fold(0_u64, |sum, (nth, prompt)| {
                sum.saturating_add(of(nth, prompt))
            })
        };
        let seen = |nth: usize, prompt: &Prompt| {
            let tokens = self.again[nth].saturating_mul(prompt.block_tokens);
            tokens.min(prompt.tokens)
        };
        let prompt_tokens = sum(&|_, prompt| prompt.tokens);
        let shared_tokens = sum(&seen);
        let cached_tokens = sum(&|nth, _| self.cached[nth].unwrap_or(0));
        let of_tokens = sum(&|nth, prompt| self.cached[nth].map_or(0, |_| prompt.tokens));
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let unique = self.prompts.iter().enumerate().map(|(nth, prompt)| {
            i64::try_from(prompt.tokens - seen(nth, prompt)).unwrap_or(i64::MAX)
        });
        Prefixes {
            n: self.prompts.len() as u64,
            prompt_tokens,
            shared_tokens,
            shared_share: share(shared_tokens, prompt_tokens).unwrap_or(0.0),
            cached_tokens,
            cached_share: share(cached_tokens, of_tokens),
            untold_tokens: sum(&|_, prompt| {
                let untold = prompt.blocks.saturating_sub(prompt.told);
                untold.saturating_mul(prompt.block_tokens)
            }),
            unique: tokens(Quantiles::of(unique.collect())),
            shared: self.nodes.len() as u64,
            prefixes: listed(self.nodes, prompt_tokens, self.processes),
        }
    }
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
    prompt_tokens: u64,
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
            saved_share: saved_tokens as f64 / prompt_tokens.max(1) as f64,
            hit_tokens: node.hit_tokens,
        }
    };
    let pid = |of: &Prefix| processes.get(of.engine).map(|process| process.pid);
    let mut prefixes: Vec<Prefix> = nodes.into_iter().map(prefix).collect();
    prefixes.sort_by(|one, other| {
        let saves = (other.saved_tokens, other.tokens).cmp(&(one.saved_tokens, one.tokens));
        saves.then_with(|| (&one.prefix, pid(one)).cmp(&(&other.prefix, pid(other))))
    });
    prefixes.truncate(MOST_PREFIXES);
    prefixes
}
