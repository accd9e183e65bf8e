//! What all chunks say, sorted beyond memory.

use super::batchings::Batchings;
use super::requests::RequestFacts;
use crate::gather::chunk_facts::ChunkFacts;
use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::Edge;
use crate::gather::name_keys::NameKeys;
use crate::gather::process_ids::ProcessIds;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::gather::slice_record::SliceRecord;
use crate::gather::slow_steps::SlowSteps;
use crate::gather::value_record::ValueRecord;
use std::io;
use std::path::PathBuf;
use trace_store::sorter::Sorter;

/// Memory for slices, and for each of the other kinds of records; what is more goes to temporary files.
pub(crate) const SLICE_BYTES: usize = 64 << 20;
pub(crate) const VALUE_BYTES: usize = 32 << 20;

/// What all chunks say.
pub(crate) struct Gathered<'a> {
    pub(crate) keys: NameKeys,
    /// Spans without an end, by key.
    pub(crate) unfinished: Vec<u64>,
    pub(crate) slices: Sorter<'a, SliceRecord>,
    pub(crate) on_devices: Sorter<'a, DeviceSlice>,
    pub(crate) edges: Sorter<'a, Edge>,
    /// The times of tokens.
    pub(crate) tokens: Sorter<'a, ValueRecord>,
    pub(crate) requests: RequestFacts,
    pub(crate) process_ids: ProcessIds,
    pub(crate) slow_steps: SlowSteps,
    pub(crate) batchings: Batchings,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) blocks: Sorter<'a, PromptBlock>,
}

impl<'a> Gathered<'a> {
    pub(crate) fn new(folders: &'a [PathBuf]) -> Gathered<'a> {
        Gathered {
            keys: NameKeys::default(),
            unfinished: Vec::new(),
            slices: Sorter::in_any(folders, SLICE_BYTES),
            on_devices: Sorter::in_any(folders, VALUE_BYTES),
            edges: Sorter::in_any(folders, VALUE_BYTES),
            tokens: Sorter::in_any(folders, VALUE_BYTES),
            requests: RequestFacts::default(),
            process_ids: ProcessIds::default(),
            slow_steps: SlowSteps::default(),
            batchings: Batchings::default(),
            prompts: Vec::new(),
            blocks: Sorter::in_any(folders, VALUE_BYTES),
        }
    }

    /// Takes what a chunk says.
    pub(crate) fn take(&mut self, facts: ChunkFacts) -> io::Result<()> {
        let numbers = self.keys.take(facts.keys);
        self.unfinished.resize(self.keys.len(), 0);
        for key in facts.unfinished {
            self.unfinished[numbers[key as usize] as usize] += 1;
        }
        self.slow_steps.take(facts.slow_steps, &numbers);
        for slice in facts.slices {
            let key = numbers[slice.key as usize];
            self.slices.push(SliceRecord { key, ..slice })?;
        }
        for slice in facts.on_devices {
            self.on_devices.push(slice)?;
        }
        for edge in facts.edges {
            self.edges.push(edge)?;
        }
        for (request, id) in facts.requests {
            self.requests.name(request, id);
        }
        for moment in facts.moments {
            if let Some(token) = self.requests.take(moment) {
                self.tokens.push(token)?;
            }
        }
        let batchings = &mut self.batchings;
        facts
            .step_tokens
            .into_iter()
            .for_each(|step| batchings.take(step));
        let speculations = facts.speculations.into_iter();
        speculations.for_each(|step| batchings.speculated(step));
        self.process_ids.take(facts.process_ids);
        facts
            .prompts
            .into_iter()
            .try_for_each(|(prompt, hashes)| self.take_prompt(prompt, &hashes))
    }

    fn take_prompt(&mut self, of: Prompt, hashes: &[u64]) -> io::Result<()> {
        let process = u32::try_from(of.process).map_err(io::Error::other)?;
        let prompt = u32::try_from(self.prompts.len()).map_err(io::Error::other)?;
        for (hash, nth) in hashes.iter().zip(1..) {
            self.blocks.push(PromptBlock {
                process,
                hash: *hash,
                prompt,
                nth,
            })?;
        }
        self.prompts.push(of);
        Ok(())
    }
}
