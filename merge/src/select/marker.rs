//! Marks the events of each chunk that are shown, if the event alone does not determine that. These
//! are the events that match a filter, and spans whose begin and end are events of their own.

use crate::Error;
use crate::base::progress::Progress;
use crate::event::edges::{Edges, Relation};
use crate::event::event_mask::Mask;
use crate::event::flow::id_from_global_number;
use crate::event::line::Event;
use crate::identity::plan::Plan;
use crate::pass::chunk::{Chunk, EventRef};
use crate::pass::labels::Labels;
use crate::pass::parallel::map_and_merge;
use crate::pass::source::Source;
use crate::select::filter::{EventFilter, Filter, selected_pids};
use crate::select::flow_enclosure::{EnclosureItem, add_enclosed_flows};
use crate::span::group_key::{
    FilterState, GroupEvent, GroupKey, GroupRole, ThreadNumber, group_and_role,
};
use crate::span::groups::show_groups;
use crate::store::sorter::Sorter;
use crate::summary::chunk_summary::RecordedThread;
use sa_format::Phase;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Marks the selected events of recordings whose processes are known.
pub(crate) struct Marker<'a> {
    filter: &'a Filter,
    event_filter: EventFilter<'a>,
    plan: &'a Plan,
    edges: Edges,
    /// All threads. `numbers` contains their indexes.
    threads: Vec<RecordedThread>,
    numbers: HashMap<RecordedThread, ThreadNumber>,
    /// Output pids of the selected processes.
    pids: HashSet<Box<[u8]>>,
}

/// Result of the marking.
pub(crate) struct MarkResult {
    /// Number of spans with an end event that cross an edge.
    pub(crate) cut: u64,
    /// True if events that are shown also have engine ids of requests that were not selected.
    pub(crate) has_others: bool,
}

/// Events and threads of a chunk, or of several.
#[derive(Default)]
struct ScannedChunk {
    mask: Mask,
    grouped: Vec<GroupEvent<FilterState>>,
    items: Vec<EnclosureItem>,
    names: Vec<MetadataEvent>,
    used: HashSet<ThreadNumber>,
    /// Ids in the trace of flows of requests that were not selected.
    other_flows: HashSet<u64>,
}

/// Metadata of a process or of a thread.
struct MetadataEvent {
    at: EventRef,
    recorded_thread: RecordedThread,
    is_of_thread: bool,
}

impl ScannedChunk {
    /// Adds an event that belongs to others. A flow event only counts in the window. If events are
    /// filtered, it also must be in a span that is shown.
    fn add(&mut self, event: GroupEvent<FilterState>, only_in_spans: bool) {
        let is_of_flow = matches!(event.role, GroupRole::Start | GroupRole::Next);
        match is_of_flow {
            true if !event.data.is_in_window => {}
            true if only_in_spans => self.items.push(EnclosureItem::from_flow(event)),
            true if !event.data.is_selected => {}
            _ => self.grouped.push(event),
        }
    }
}

impl Marker<'_> {
    /// Creates a marker for the events of a window that match a filter.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if no process matches.
    pub(crate) fn new<'a>(
        filter: &'a Filter,
        edges: Edges,
        plan: &'a Plan,
    ) -> Result<Marker<'a>, Error> {
        let threads = plan.targets.iter().enumerate();
        let threads: Vec<RecordedThread> = threads
            .flat_map(|(recording, of)| of.keys().map(move |thread| (recording, *thread)))
            .collect();
        Ok(Marker {
            pids: selected_pids(filter, &plan.processes)?,
            numbers: threads.iter().copied().zip(0..).collect(),
            threads,
            event_filter: EventFilter::new(filter),
            filter,
            edges,
            plan,
        })
    }

    /// Marks the events of each chunk that are shown. If memory does not suffice, events are sorted
    /// in files in `folder`.
    ///
    /// Chunks are read in batches, so that the results of a batch can be combined and dropped.
    pub(crate) fn mark(
        &self,
        sources: &mut [Source<'_>],
        chunks: &mut [Chunk],
        progress: &Progress,
        folder: &Path,
    ) -> io::Result<MarkResult> {
        let (mut grouped, mut items) = (Sorter::new(folder), Sorter::new(folder));
        let mut all = ScannedChunk::default();
        let needs_mask = |chunk: &Chunk| !self.filter.is_empty() || chunk.has_begins_or_ends;
        let scanned = chunks.iter().filter(|chunk| needs_mask(chunk));
        progress.expect_more(scanned.map(Chunk::len).sum());
        for chunk in &mut *chunks {
            chunk.shown.mask = None;
        }
        let scan = |number, chunk: &Chunk, source: &Source<'_>| {
            needs_mask(chunk).then(|| {
                progress.add(chunk.len(), 0);
                self.scan_chunk(number, chunk, source)
            })
        };
        map_and_merge(sources, chunks, scan, |chunk, _, scanned| {
            let Some(scanned) = scanned else {
                return Ok(());
            };
            chunk.shown.mask = Some(scanned.mask);
            all.names.extend(scanned.names);
            all.used.extend(scanned.used);
            all.other_flows.extend(scanned.other_flows);
            let mut new_grouped = scanned.grouped.into_iter();
            new_grouped.try_for_each(|event| grouped.push(event))?;
            let mut new_items = scanned.items.into_iter();
            new_items.try_for_each(|item| items.push(item))
        })?;
        let mut show = |event: &GroupEvent<FilterState>| {
            set(chunks, event.at);
            all.used.insert(event.data.thread);
        };
        let cut = show_groups(&grouped.finish()?, self.edges, &mut show, |span| match self
            .filter
            .selects_events()
        {
            true => items.push(EnclosureItem::from_span(span)),
            false => Ok(()),
        })?;
        let mut flows = Sorter::new(folder);
        add_enclosed_flows(&items.finish()?, &all.other_flows, &mut flows)?;
        show_groups(&flows.finish()?, self.edges, &mut show, |_| Ok(()))?;
        self.mark_names(&all.names, &all.used, chunks);
        Ok(MarkResult {
            cut,
            has_others: !all.other_flows.is_empty(),
        })
    }

    /// Scans the events of a chunk. Events that belong together and metadata are decided later.
    fn scan_chunk(&self, number: usize, chunk: &Chunk, source: &Source<'_>) -> ScannedChunk {
        let mut scanned = ScannedChunk::default();
        let chunk_number = u32::try_from(number).unwrap_or(u32::MAX);
        chunk.for_each_event(source.bytes, |nth, relation, event| {
            scanned.mask.push();
            let at = EventRef {
                chunk: chunk_number,
                nth,
            };
            let is_in_window = relation != Relation::Outside;
            self.event(event, source.recording, at, is_in_window, &mut scanned);
        });
        scanned
    }

    fn event(
        &self,
        event: &Event<'_>,
        recording: usize,
        at: EventRef,
        is_in_window: bool,
        scanned: &mut ScannedChunk,
    ) {
        let recorded_thread = (recording, (event.pid, event.tid));
        let target = self.plan.targets[recording].get(&recorded_thread.1);
        let target = target.filter(|target| self.pids.contains(&*target.pid));
        let (Some(target), Some(thread)) = (target, self.numbers.get(&recorded_thread).copied())
        else {
            return;
        };
        if event.is_metadata() {
            let is_of_thread = event.name().starts_with(b"thread_");
            return scanned.names.push(MetadataEvent {
                at,
                recorded_thread,
                is_of_thread,
            });
        }
        let shift_ns = self.plan.shifts_ns[recording].saturating_add(self.plan.base_ns);
        let is_selected = self.event_filter.matches(event);
        let at_ns = event.ts_ns.saturating_add(shift_ns);
        if is_selected && is_in_window {
            let others = self.event_filter.other_requests(event).into_iter();
            let flows = others.map(|id| id_from_global_number(xxh3_64(id.as_bytes())));
            scanned.other_flows.extend(flows);
        }
        match group_and_role(event, target, thread, !self.filter.is_empty()) {
            Some((group, role)) => scanned.add(
                GroupEvent {
                    group,
                    role,
                    at_ns,
                    at,
                    labels: match group {
                        GroupKey::Thread(_) => Labels::new(event),
                        _ => Labels::default(),
                    },
                    data: FilterState {
                        thread,
                        is_selected,
                        is_in_window,
                    },
                },
                self.filter.selects_events(),
            ),
            // A single event. If it is a span, it may cover flow events.
            None if is_selected && is_in_window => {
                scanned.mask.set(at.nth as usize);
                scanned.used.insert(thread);
                let end_ns = match event.phase {
                    Phase::Complete => at_ns.saturating_add(event.dur_ns),
                    Phase::Begin => i64::MAX,
                    _ => return,
                };
                if self.filter.selects_events() {
                    scanned
                        .items
                        .push(EnclosureItem::from_span((thread, (at_ns, end_ns))));
                }
            }
            None => {}
        }
    }

    /// Marks the metadata of processes and threads that have events to show. Without a filter,
    /// marks all metadata.
    fn mark_names(
        &self,
        names: &[MetadataEvent],
        used: &HashSet<ThreadNumber>,
        chunks: &mut [Chunk],
    ) {
        let target = |recorded_thread: &RecordedThread| {
            self.plan.targets[recorded_thread.0].get(&recorded_thread.1)
        };
        let used = used.iter();
        let used = used.filter_map(|thread| target(self.threads.get(*thread as usize)?));
        let threads: HashSet<(&[u8], &[u8])> =
            used.map(|target| (&*target.pid, &*target.tid)).collect();
        let processes: HashSet<&[u8]> = threads.iter().map(|(pid, _)| *pid).collect();
        for name in names {
            let is_used =
                target(&name.recorded_thread).is_some_and(|target| match name.is_of_thread {
                    true => threads.contains(&(&*target.pid, &*target.tid)),
                    false => processes.contains(&*target.pid),
                });
            if is_used || self.filter.is_empty() {
                set(chunks, name.at);
            }
        }
    }
}

/// Marks an event.
fn set(chunks: &mut [Chunk], at: EventRef) {
    let chunk = chunks.get_mut(at.chunk as usize);
    if let Some(mask) = chunk.and_then(|chunk| chunk.shown.mask.as_mut()) {
        mask.set(at.nth as usize);
    }
}
