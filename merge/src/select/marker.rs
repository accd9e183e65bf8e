//! Marks in each chunk the events that are shown, where an event by itself does not tell. These are the events that a filter lets through, and spans whose
//! begin and end are events of their own.

use crate::Error;
use crate::base::progress::Progress;
use crate::event::edges::{Edges, Lies};
use crate::event::flow::of_global_number;
use crate::event::line::Event;
use crate::fragment::temp_folder::in_first;
use crate::identity::plan::Plan;
use crate::pass::chunk::Chunk;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::source::Source;
use crate::pass::visit::visit_mut;
use crate::select::filter::{Filter, Wanted};
use crate::select::filter_processes::chosen;
use crate::select::filter_scan::{MetadataEvent, ScannedChunk, whole};
use crate::select::flow_enclosure::{Spot, covered};
use crate::span::group_key::{GroupEvent, GroupKey, ThreadNumber};
use crate::span::groups::GroupMatcher;
use crate::store::sorter::{Sorted, Sorter};
use crate::summary::thread::RecordedThread;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What is asked for of recordings whose processes are known.
pub(crate) struct Marker<'a> {
    filter: &'a Filter,
    wanted: Wanted<'a>,
    plan: &'a Plan,
    edges: Edges,
    /// All threads, and their numbers.
    rows: Vec<RecordedThread>,
    numbers: HashMap<RecordedThread, ThreadNumber>,
    /// Output pids of the processes that are asked for.
    pids: HashSet<Box<[u8]>>,
}

/// What became of the marking.
pub(crate) struct Marked {
    /// Spans with an end of their own that cross an edge.
    pub(crate) cut: u64,
    /// Whether events that are shown name requests, by the engine's ids, beside those that are asked for.
    pub(crate) has_others: bool,
}

/// What was found in all chunks.
struct Gathered<'f> {
    mates: Sorter<'f, GroupEvent>,
    spots: Sorter<'f, Spot>,
    names: Vec<MetadataEvent>,
    used: HashSet<ThreadNumber>,
    other_flows: HashSet<u64>,
}

impl Marker<'_> {
    /// One for the events of a window that a filter lets through.
    ///
    /// # Errors
    /// If no process is asked for.
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
            pids: chosen(filter, &plan.identities.processes)?,
            numbers: rows.iter().copied().zip(0..).collect(),
            rows,
            wanted: Wanted::new(filter),
            filter,
            edges,
            plan,
        })
    }

    /// Marks what each chunk shows; gives what became of it. What is too much for memory goes to files in the first
    /// of `folders` that takes them.
    pub(crate) fn mark(
        &self,
        sources: &mut [Source<'_>],
        chunks: &mut [Chunk],
        progress: &Progress,
        folders: &[PathBuf],
    ) -> Result<Marked, Error> {
        let mark = |folder: &Path| self.mark_with(sources, chunks, progress, folder);
        let (_, marked) = in_first(folders, mark)?;
        Ok(marked)
    }

    fn mark_with(
        &self,
        sources: &mut [Source<'_>],
        chunks: &mut [Chunk],
        progress: &Progress,
        folder: &Path,
    ) -> io::Result<Marked> {
        let mut gathered = Gathered {
            mates: Sorter::new(folder),
            spots: Sorter::new(folder),
            names: Vec::new(),
            used: HashSet::new(),
            other_flows: HashSet::new(),
        };
        self.gather(sources, chunks, progress, &mut gathered)?;
        let Gathered {
            mates,
            mut spots,
            names,
            mut used,
            other_flows,
        } = gathered;
        let mut show = |mate: &GroupEvent| {
            set(chunks, mate.at);
            used.insert(mate.row);
        };
        let cut = pair(&mates.finish()?, self.edges, &mut show, |span| {
            match self.filter.is_of_events() {
                true => spots.push(Spot::of_span(span)),
                false => Ok(()),
            }
        })?;
        let mut flows = Sorter::new(folder);
        covered(&spots.finish()?, &other_flows, &mut flows)?;
        pair(&flows.finish()?, self.edges, &mut show, |_| Ok(()))?;
        self.mark_names(&names, &used, chunks);
        Ok(Marked {
            cut,
            has_others: !other_flows.is_empty(),
        })
    }

    /// Looks at some chunks after the others, so that what each holds is put together and forgotten.
    fn gather(
        &self,
        sources: &mut [Source<'_>],
        chunks: &mut [Chunk],
        progress: &Progress,
        all: &mut Gathered<'_>,
    ) -> io::Result<()> {
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
        visit_mut(sources, chunks, look, |of, looked| {
            let Some(looked) = looked else { return Ok(()) };
            of.chunk.shown.mask = Some(looked.mask);
            let mut mates = looked.mates.into_iter();
            mates.try_for_each(|mate| all.mates.push(mate))?;
            let mut spots = looked.spots.into_iter();
            spots.try_for_each(|spot| all.spots.push(spot))?;
            all.names.extend(looked.names);
            all.used.extend(looked.used);
            all.other_flows.extend(looked.other_flows);
            Ok(())
        })
    }

    /// Looks at each event of a chunk; those that belong together and metadata are not decided yet.
    fn look(&self, number: usize, chunk: &Chunk, source: &Source<'_>) -> ScannedChunk {
        let mut looked = ScannedChunk::default();
        let chunk_number = u32::try_from(number).unwrap_or(u32::MAX);
        chunk.each(source.bytes, |nth, lies, event| {
            looked.mask.push(false);
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
                    row,
                    labels: match whole {
                        GroupKey::Thread(_) => Labels::of(event),
                        _ => Labels::default(),
                    },
                    wanted,
                    inside,
                },
                self.filter.is_of_events(),
            ),
            None if wanted && inside => {
                looked.show(event, at_ns, at, row, self.filter.is_of_events());
            }
            None => {}
        }
    }

    /// Shows the metadata of processes and threads of which anything is shown; all of it in a window alone.
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

/// Shows an event.
fn set(chunks: &mut [Chunk], at: EventRef) {
    let chunk = chunks.get_mut(at.chunk as usize);
    if let Some(mask) = chunk.and_then(|chunk| chunk.shown.mask.as_mut()) {
        mask.set(at.nth as usize);
    }
}

/// Calls `show` with what is shown of those that belong together, and `cover` with their spans; gives how many cross an edge.
fn pair(
    mates: &Sorted<GroupEvent>,
    edges: Edges,
    show: impl FnMut(&GroupEvent),
    cover: impl FnMut((ThreadNumber, (i64, i64))) -> io::Result<()>,
) -> io::Result<u64> {
    let mut pairs = GroupMatcher::new(edges, show, cover);
    mates.each(|mate| pairs.take(mate))?;
    pairs.leave()?;
    Ok(pairs.cut)
}
