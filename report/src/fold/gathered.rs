//! Records of all chunks of a run. Large kinds are sorted in temporary files.

use super::load_levels::Batchings;
use super::requests::RequestRecords;
use crate::gather::chunk_records::ChunkRecords;
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
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use trace_store::sorter::Sorter;

/// Memory for slices and for each other kind of record, in bytes. Records beyond it go to temporary files.
pub(crate) const SLICE_BYTES: usize = 64 << 20;
pub(crate) const VALUE_BYTES: usize = 32 << 20;
/// Memory for steps and for idle intervals, in bytes.
pub(crate) const ROW_BYTES: usize = 8 << 20;

/// Maximum number of processes whose settings are kept.
const MAX_ENGINES: usize = 1024;

/// Records of all chunks.
pub(crate) struct Gathered<'a> {
    pub(crate) keys: NameKeys,
    /// Number of spans without an end, by name key.
    pub(crate) unfinished: Vec<u64>,
    /// The first [`MOST_OPEN`] spans without an end.
    pub(crate) open: Vec<OpenSpan>,
    pub(crate) slices: Sorter<'a, SliceRecord>,
    pub(crate) on_devices: Sorter<'a, DeviceSlice>,
    pub(crate) launch_ends: Sorter<'a, LaunchEnd>,
    pub(crate) edges: Sorter<'a, Edge>,
    pub(crate) requests: RequestRecords<'a>,
    pub(crate) process_ids: ProcessIds,
    /// End times of the spans in which engines start up.
    pub(crate) ready: Vec<i64>,
    pub(crate) steps: Sorter<'a, StepRecord>,
    /// Processes that run steps.
    pub(crate) stepping: BTreeSet<u32>,
    pub(crate) batchings: Batchings,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) blocks: Sorter<'a, PromptBlock>,
    /// Settings of engines by process number.
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
            stepping: BTreeSet::new(),
            batchings: Batchings::default(),
            prompts: Vec::new(),
            blocks: Sorter::in_any(folders, VALUE_BYTES),
            settings: BTreeMap::new(),
            event_times: EventTimes::default(),
        }
    }

    /// Adds the records of a chunk. Its name keys and reasons get numbers that are common to the run.
    pub(crate) fn add_chunk(&mut self, mut chunk: ChunkRecords) -> io::Result<()> {
        self.requests.add_chunk(&mut chunk)?;
        let numbers = self.keys.merge(chunk.keys);
        self.unfinished.resize(self.keys.len(), 0);
        for key in chunk.unfinished {
            self.unfinished[numbers[key as usize] as usize] += 1;
        }
        let room = MOST_OPEN.saturating_sub(self.open.len());
        self.open.extend(chunk.open.into_iter().take(room));
        self.stepping
            .extend(chunk.steps.iter().map(|step| step.process));
        let steps = chunk.steps.into_iter();
        self.steps
            .extend(steps.map(|step| step.renumbered(&numbers)))?;
        self.slices.extend(chunk.slices.into_iter().map(|slice| {
            let key = numbers[slice.key as usize];
            SliceRecord { key, ..slice }
        }))?;
        self.on_devices.extend(chunk.on_devices)?;
        self.launch_ends.extend(chunk.launch_ends)?;
        self.edges.extend(chunk.edges)?;
        for step in chunk.step_tokens {
            let since_ns = self.batchings.add_step(step);
            self.steps.push(StepRecord::from_tokens(since_ns, &step))?;
        }
        for step in chunk.speculations {
            self.batchings.add_speculation(step);
        }
        self.event_times.merge(chunk.event_times);
        self.process_ids.merge(chunk.process_ids);
        self.ready.extend(chunk.ready);
        for (process, settings) in chunk.settings {
            if self.settings.len() < MAX_ENGINES || self.settings.contains_key(&process) {
                self.settings.insert(process, settings);
            }
        }
        let mut prompts = chunk.prompts.into_iter();
        prompts.try_for_each(|(prompt, hashes)| self.add_prompt(prompt, &hashes))
    }

    fn add_prompt(&mut self, record: Prompt, hashes: &[u64]) -> io::Result<()> {
        let process = u32::try_from(record.process).map_err(io::Error::other)?;
        let prompt = u32::try_from(self.prompts.len()).map_err(io::Error::other)?;
        for (hash, nth) in hashes.iter().zip(1..) {
            self.blocks.push(PromptBlock {
                process,
                hash: *hash,
                prompt,
                nth,
            })?;
        }
        let moment = RequestMoment::from_prompt(record.request, process, record.ts_ns, prompt);
        self.prompts.push(record);
        self.requests.add_prompt(moment)
    }
}
