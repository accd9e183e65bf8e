//! What all chunks say, sorted beyond memory.

use super::load_levels::Batchings;
use super::requests::RequestRecords;
use crate::gather::chunk_facts::ChunkFacts;
use crate::gather::device_slice::{DeviceSlice, LaunchEnd};
use crate::gather::edge::Edge;
use crate::gather::event_times::EventTimes;
use crate::gather::name_keys::NameKeys;
use crate::gather::process_ids::ProcessIds;
use crate::gather::prompt_blocks::{Prompt, PromptBlock};
use crate::gather::request_moment::RequestMoment;
use crate::gather::slice_record::{MOST_OPEN, OpenSpan, SliceRecord};
use crate::gather::step_record::StepRecord;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use trace_store::sorter::Sorter;

/// Memory for slices, and for each of the other kinds of records; what is more goes to temporary files.
pub(crate) const SLICE_BYTES: usize = 64 << 20;
pub(crate) const VALUE_BYTES: usize = 32 << 20;
/// Memory for steps, and for idle intervals.
pub(crate) const ROW_BYTES: usize = 8 << 20;

/// Maximum number of processes whose settings are kept.
const MAX_ENGINES: usize = 1024;

/// What all chunks say.
pub(crate) struct Gathered<'a> {
    pub(crate) keys: NameKeys,
    /// Spans without an end, by key.
    pub(crate) unfinished: Vec<u64>,
    /// The same spans, the first ones.
    pub(crate) open: Vec<OpenSpan>,
    pub(crate) slices: Sorter<'a, SliceRecord>,
    pub(crate) on_devices: Sorter<'a, DeviceSlice>,
    pub(crate) launch_ends: Sorter<'a, LaunchEnd>,
    pub(crate) edges: Sorter<'a, Edge>,
    pub(crate) requests: RequestRecords<'a>,
    pub(crate) process_ids: ProcessIds,
    /// Ends of the spans in which engines start.
    pub(crate) ready: Vec<i64>,
    pub(crate) steps: Sorter<'a, StepRecord>,
    pub(crate) batchings: Batchings,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) blocks: Sorter<'a, PromptBlock>,
    /// Settings of engines, by the number of the process.
    pub(crate) settings: BTreeMap<usize, BTreeMap<String, Value>>,
    pub(crate) event_times: EventTimes,
}

impl<'a> Gathered<'a> {
    pub(crate) fn new(folders: &'a [PathBuf]) -> Gathered<'a> {
        Gathered {
            keys: NameKeys::default(),
            unfinished: Vec::new(),
            open: Vec::new(),
            slices: Sorter::in_any(folders, SLICE_BYTES),
            on_devices: Sorter::in_any(folders, VALUE_BYTES),
            launch_ends: Sorter::in_any(folders, VALUE_BYTES),
            edges: Sorter::in_any(folders, VALUE_BYTES),
            requests: RequestRecords::new(folders),
            process_ids: ProcessIds::default(),
            ready: Vec::new(),
            steps: Sorter::in_any(folders, ROW_BYTES),
            batchings: Batchings::default(),
            prompts: Vec::new(),
            blocks: Sorter::in_any(folders, VALUE_BYTES),
            settings: BTreeMap::new(),
            event_times: EventTimes::default(),
        }
    }

    /// Takes what a chunk says.
    pub(crate) fn take(&mut self, mut facts: ChunkFacts) -> io::Result<()> {
        self.requests.take(&mut facts)?;
        let numbers = self.keys.take(facts.keys);
        self.unfinished.resize(self.keys.len(), 0);
        for key in facts.unfinished {
            self.unfinished[numbers[key as usize] as usize] += 1;
        }
        let room = MOST_OPEN.saturating_sub(self.open.len());
        self.open.extend(facts.open.into_iter().take(room));
        let steps = facts.steps.into_iter();
        self.steps
            .extend(steps.map(|step| step.renumbered(&numbers)))?;
        self.slices.extend(facts.slices.into_iter().map(|slice| {
            let key = numbers[slice.key as usize];
            SliceRecord { key, ..slice }
        }))?;
        self.on_devices.extend(facts.on_devices)?;
        self.launch_ends.extend(facts.launch_ends)?;
        self.edges.extend(facts.edges)?;
        for step in facts.step_tokens {
            let since_ns = self.batchings.take(step);
            self.steps.push(StepRecord::of_tokens(since_ns, &step))?;
        }
        for step in facts.speculations {
            self.batchings.speculated(step);
        }
        self.event_times.merge(facts.event_times);
        self.process_ids.take(facts.process_ids);
        self.ready.extend(facts.ready);
        for (process, settings) in facts.settings {
            if self.settings.len() < MAX_ENGINES || self.settings.contains_key(&process) {
                self.settings.insert(process, settings);
            }
        }
        let mut prompts = facts.prompts.into_iter();
        prompts.try_for_each(|(prompt, hashes)| self.take_prompt(prompt, &hashes))
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
        let moment = RequestMoment::of_prompt(of.request, process, of.ts_ns, prompt);
        self.prompts.push(of);
        self.requests.take_prompt(moment)
    }
}
