//! Collects the results of the first pass, which come from the chunks in any order.

use super::aliases::SelectedIds;
use super::args::ids::RequestId;
use super::batch::Batch;
use super::links::{LinkReport, Links};
use super::program::first_spans::FirstSpan;
use super::program::styles::{LooseCounts, Styles};
use super::records::{DroppedRequest, FlowPhases, ThreadFlow};
use super::requests::RequestMap;
use super::resolve::resolve;
use crate::clock::time_map::TimeMap;
use crate::fragment::recording::Recording;
use crate::store::sorter::Sorter;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum bytes of records in memory before they go to a temporary file.
const FLOW_BYTES: usize = 16 << 20;
const PHASE_BYTES: usize = 2 << 20;
const FIRST_SPAN_BYTES: usize = 2 << 20;
const DROPPED_BYTES: usize = 2 << 20;

/// Meaning of ids and times in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) recording: usize,
    /// Value that is combined with each key: 0, unless runs are distinguished.
    pub(super) scope: u64,
    /// Number of the first recording with the same clock.
    pub(super) clock: u32,
    /// True for our own recordings. Flows of other profilers have other meanings, so they are not
    /// checked for a start and an end.
    pub(super) is_ours: bool,
}

pub(crate) struct Collector<'f> {
    /// Origin of each recording's events.
    pub(super) origins: Vec<Origin>,
    /// Folders for temporary files.
    folders: &'f [PathBuf],
    pools: Mutex<Pools<'f>>,
    cut: AtomicU64,
    /// Requests to link, if not all of them are.
    selected: OnceLock<SelectedIds>,
    pub(super) styles: Styles,
    /// False if no recording is ours: only our recorder draws flows for requests.
    pub(super) any_ours: bool,
}

struct Pools<'f> {
    requests: RequestMap,
    /// Requests for which the map has no room. They are counted.
    dropped: Sorter<'f, DroppedRequest>,
    flows: Sorter<'f, ThreadFlow>,
    phases: Sorter<'f, FlowPhases>,
    first_spans: Sorter<'f, FirstSpan>,
    /// First error of a temporary file. Nothing is added after that.
    failure: Option<io::Error>,
}

impl<'f> Collector<'f> {
    /// Creates a collector that uses at most about `bound_bytes` of memory. With `by_run`, the same
    /// id in two runs means two requests. Recordings that do not name a run belong to the only one.
    pub(crate) fn new(
        recordings: &[Recording],
        by_run: bool,
        bound_bytes: usize,
        folders: &'f [PathBuf],
    ) -> Self {
        let by_run = by_run && run_count(recordings) > 1;
        let mut clocks = HashMap::new();
        let origins = recordings.iter().enumerate().map(|(number, recording)| {
            let header = recording.header();
            let run = header.filter(|_| by_run).map(|header| &header.run);
            let clock = match header {
                Some(h) => (Some((&h.host, &h.boot_id, h.monotonic_offset_ns)), 0),
                None => (None, number),
            };
            let clock = *clocks.entry(clock).or_insert(number);
            Origin {
                recording: number,
                scope: run.map_or(0, |run| xxh3_64(run.as_bytes())),
                clock: u32::try_from(clock).unwrap_or(u32::MAX),
                is_ours: header.is_some(),
            }
        });
        let origins: Vec<Origin> = origins.collect();
        let any_ours = origins.iter().any(|origin| origin.is_ours);
        Collector {
            origins,
            any_ours,
            folders,
            pools: Mutex::new(Pools {
                requests: RequestMap::new(bound_bytes),
                dropped: Sorter::in_any(folders, DROPPED_BYTES),
                flows: Sorter::in_any(folders, FLOW_BYTES),
                phases: Sorter::in_any(folders, PHASE_BYTES),
                first_spans: Sorter::in_any(folders, FIRST_SPAN_BYTES),
                failure: None,
            }),
            cut: AtomicU64::new(0),
            selected: OnceLock::new(),
            styles: Styles::default(),
        }
    }

    /// Restricts the links to these requests from now on.
    pub(crate) fn select_requests(&self, ids: SelectedIds) {
        self.selected.get_or_init(|| ids);
    }

    /// Returns true if the request with this id is to be linked.
    pub(super) fn is_selected(&self, id: &RequestId<'_>) -> bool {
        let has =
            |ids: &SelectedIds| std::str::from_utf8(&id.text()).is_ok_and(|id| ids.matches(id));
        self.selected.get().is_none_or(has)
    }

    /// Adds the contents of a chunk, or of a part of it, and clears the batch.
    pub(super) fn add(&self, found: &mut Batch, clock: u32) {
        let mut pools = self.pools();
        if pools.failure.is_none() {
            pools.failure = pools.add(found, clock).err();
        }
        drop(pools);
        found.clear();
    }

    fn pools(&self) -> MutexGuard<'_, Pools<'f>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts events with too many ids.
    pub(super) fn add_cut(&self, events: u64) {
        self.cut.fetch_add(events, Ordering::Relaxed);
    }

    /// Ends the first pass. `maps` bring the times of the recordings to one axis.
    pub(crate) fn finish(self, maps: &[TimeMap]) -> Links {
        let folders = self.folders;
        let cut = self.cut.load(Ordering::Relaxed);
        let mut links = match self.into_links(maps) {
            Ok(links) => links,
            Err(error) => Links {
                report: LinkReport {
                    failed: Some(failure(folders, &error)),
                    ..LinkReport::default()
                },
                ..Links::default()
            },
        };
        links.report.events_cut = cut;
        links
    }

    fn into_links(self, maps: &[TimeMap]) -> io::Result<Links> {
        let pools = self
            .pools
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        pools.failure.map_or(Ok(()), Err)?;
        let mut loose = LooseCounts::default();
        let mut table = resolve(pools.requests, &pools.flows.finish()?, maps, &mut loose);
        table.styles = self.styles.into_texts();
        let dropped = pools.dropped.finish()?;
        let chains = dropped.iter().filter(|request| request.is_chain);
        loose.add_local(&pools.phases.finish()?);
        Ok(Links {
            report: LinkReport {
                requests: table.requests,
                requests_dropped: chains.count() as u64,
                loose_flows: loose.report(&table.styles),
                ..LinkReport::default()
            },
            origins: self.origins,
            table,
            first_spans: pools.first_spans.finish()?,
        })
    }
}

impl Pools<'_> {
    fn add(&mut self, found: &Batch, clock: u32) -> io::Result<()> {
        let (mut dropped, sorter) = (Ok(()), &mut self.dropped);
        self.requests.add(found, clock, |request| {
            if dropped.is_ok() {
                dropped = sorter.push(request);
            }
        });
        dropped?;
        self.flows.extend(found.flows.values().copied())?;
        self.phases.extend(found.phases.values().copied())?;
        self.first_spans.extend(found.first_spans.iter().copied())
    }
}

fn failure(folders: &[PathBuf], error: &io::Error) -> String {
    let folders: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    format!("temporary file in {}: {error}", folders.join(" or "))
}

fn run_count(recordings: &[Recording]) -> usize {
    let headers = recordings.iter().filter_map(Recording::header);
    let runs: HashSet<&str> = headers.map(|header| header.run.as_str()).collect();
    runs.len()
}
