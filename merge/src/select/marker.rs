//! Marks the events of each chunk that are shown, if the event alone does not determine that. These
//! are the events that match a filter, and spans whose begin and end are events of their own.

use crate::Error;
use crate::base::progress::Progress;
use crate::event::edges::{Edges, Lies};
use crate::event::event_mask::Mask;
use crate::event::flow::of_global_number;
use crate::event::line::Event;
use crate::identity::plan::Plan;
use crate::pass::chunk::{Chunk, EventRef};
use crate::pass::labels::Labels;
use crate::pass::source::Source;
use crate::pass::visit::visit_mut;
use crate::select::filter::{Filter, Wanted, chosen};
use crate::select::flow_enclosure::{Spot, covered};
use crate::span::group_key::{Choice, GroupEvent, GroupKey, GroupRole, ThreadNumber, whole};
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
    wanted: Wanted<'a>,
    plan: &'a Plan,
    edges: Edges,
    /// All threads. `numbers` contains their indexes.
    rows: Vec<RecordedThread>,
    numbers: HashMap<RecordedThread, ThreadNumber>,
    /// Output pids of the selected processes.
    pids: HashSet<Box<[u8]>>,
}

/// Result of the marking.
pub(crate) struct Marked {
    /// Number of spans with an end event that cross an edge.
    pub(crate) cut: u64,
    /// True if events that are shown also have engine ids of requests that were not selected.
    pub(crate) has_others: bool,
}

/// Events and threads of a chunk, or of several.
#[derive(Default)]
struct ScannedChunk {
    mask: Mask,
    mates: Vec<GroupEvent<Choice>>,
    spots: Vec<Spot>,
    names: Vec<MetadataEvent>,
    used: HashSet<ThreadNumber>,
    /// Ids in the trace of flows of requests that were not selected.
    other_flows: HashSet<u64>,
}

/// Metadata of a process or of a thread.
struct MetadataEvent {
    at: EventRef,
    place: RecordedThread,
    of_thread: bool,
}

impl ScannedChunk {
    /// Adds an event that belongs to others. A flow event only counts in the window. If events are
    /// filtered, it also must be in a span that is shown.
    fn add(&mut self, mate: GroupEvent<Choice>, only_in_spans: bool) {
        let is_of_flow = matches!(mate.role, GroupRole::Start | GroupRole::Next);
        match is_of_flow {
            true if !mate.more.inside => {}
            true if only_in_spans => self.spots.push(Spot::of_flow(mate)),
            true if !mate.more.wanted => {}
            _ => self.mates.push(mate),
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
        let rows: Vec<RecordedThread> = threads
            .flat_map(|(recording, of)| of.keys().map(move |thread| (recording, *thread)))
            .collect();
        Ok(Marker {
            pids: chosen(filter, &plan.processes)?,
            numbers: rows.iter().copied().zip(0..).collect(),
            rows,
            wanted: Wanted::new(filter),
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
    ) -> io::Result<Marked> {
        let (mut mates, mut spots) = (Sorter::new(folder), Sorter::new(folder));
        let mut all = ScannedChunk::default();
        let is_asked = |chunk: &Chunk| !self.filter.is_empty() || chunk.halves;
        let asked = chunks.iter().filter(|chunk| is_asked(chunk));
        progress.expect_more(asked.map(Chunk::len).sum());
        for chunk in &mut *chunks {
            chunk.shown.mask = None;
        }
        let look = |number, chunk: &Chunk, source: &Source<'_>| {
            is_asked(chunk).then(|| {
                progress.add(chunk.len(), 0);
                self.look(number, chunk, source)
            })
        };
        visit_mut(sources, chunks, look, |chunk, _, looked| {
            let Some(looked) = looked else { return Ok(()) };
            chunk.shown.mask = Some(looked.mask);
            all.names.extend(looked.names);
            all.used.extend(looked.used);
            all.other_flows.extend(looked.other_flows);
            let mut new_mates = looked.mates.into_iter();
            new_mates.try_for_each(|mate| mates.push(mate))?;
            let mut new_spots = looked.spots.into_iter();
            new_spots.try_for_each(|spot| spots.push(spot))
        })?;
        let mut show = |mate: &GroupEvent<Choice>| {
            set(chunks, mate.at);
            all.used.insert(mate.more.row);
        };
        let cut = show_groups(&mates.finish()?, self.edges, &mut show, |span| {
            match self.filter.is_of_events() {
                true => spots.push(Spot::of_span(span)),
                false => Ok(()),
            }
        })?;
        let mut flows = Sorter::new(folder);
        covered(&spots.finish()?, &all.other_flows, &mut flows)?;
        show_groups(&flows.finish()?, self.edges, &mut show, |_| Ok(()))?;
        self.mark_names(&all.names, &all.used, chunks);
        Ok(Marked {
            cut,
            has_others: !all.other_flows.is_empty(),
        })
    }

    /// Scans the events of a chunk. Events that belong together and metadata are decided later.
    fn look(&self, number: usize, chunk: &Chunk, source: &Source<'_>) -> ScannedChunk {
        let mut looked = ScannedChunk::default();
        let chunk_number = u32::try_from(number).unwrap_or(u32::MAX);
        chunk.each(source.bytes, |nth, lies, event| {
            looked.mask.push();
            let at = EventRef {
                chunk: chunk_number,
                nth,
            };
            let inside = lies != Lies::Outside;
            self.event(event, source.recording, at, inside, &mut looked);
        });
        looked
    }

    fn event(
        &self,
        event: &Event<'_>,
        recording: usize,
        at: EventRef,
        inside: bool,
        looked: &mut ScannedChunk,
    ) {
        let place = (recording, (event.pid, event.tid));
        let target = self.plan.targets[recording].get(&place.1);
        let target = target.filter(|target| self.pids.contains(&*target.pid));
        let (Some(target), Some(row)) = (target, self.numbers.get(&place).copied()) else {
            return;
        };
        if event.is_metadata() {
            let of_thread = event.name().starts_with(b"thread_");
            return looked.names.push(MetadataEvent {
                at,
                place,
                of_thread,
            });
        }
        let shift_ns = self.plan.shifts_ns[recording].saturating_add(self.plan.base_ns);
        let wanted = self.wanted.has(event);
        let at_ns = event.ts_ns.saturating_add(shift_ns);
        if wanted && inside {
            let others = self.wanted.other_requests(event).into_iter();
            let flows = others.map(|id| of_global_number(xxh3_64(id.as_bytes())));
            looked.other_flows.extend(flows);
        }
        match whole(event, target, row, !self.filter.is_empty()) {
            Some((whole, role)) => looked.add(
                GroupEvent {
                    whole,
                    role,
                    at_ns,
                    at,
                    labels: match whole {
                        GroupKey::Thread(_) => Labels::of(event),
                        _ => Labels::default(),
                    },
                    more: Choice {
                        row,
                        wanted,
                        inside,
                    },
                },
                self.filter.is_of_events(),
            ),
            // A single event. If it is a span, it may cover flow events.
            None if wanted && inside => {
                looked.mask.set(at.nth as usize);
                looked.used.insert(row);
                let end_ns = match event.phase {
                    Phase::Complete => at_ns.saturating_add(event.dur_ns),
                    Phase::Begin => i64::MAX,
                    _ => return,
                };
                if self.filter.is_of_events() {
                    looked.spots.push(Spot::of_span((row, (at_ns, end_ns))));
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
        let target = |place: &RecordedThread| self.plan.targets[place.0].get(&place.1);
        let used = used.iter();
        let used = used.filter_map(|row| target(self.rows.get(*row as usize)?));
        let threads: HashSet<(&[u8], &[u8])> =
            used.map(|target| (&*target.pid, &*target.tid)).collect();
        let processes: HashSet<&[u8]> = threads.iter().map(|(pid, _)| *pid).collect();
        for name in names {
            let is_used = target(&name.place).is_some_and(|target| match name.of_thread {
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
