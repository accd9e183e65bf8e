//! The events of a trace, after a merge has decided everything about it.

use super::devices::Devices;
use super::thread_index::ThreadIndex;
use crate::app::merge::ReadyTrace;
use crate::app::report::ProcessReport;
use crate::event::edges::Relation;
use crate::event::line::{Event, is_left_out};
use crate::identity::process::{Process, ProcessKey};
use crate::lanes::assign::Form;
use crate::pass::chunk::{Chunk, ChunkRecords, EventRecord, EventRef};
use crate::pass::labels::Labels;
use crate::pass::parallel::{BatchSize, ChunkView, map_chunks};
use crate::reader::error::try_folders;
use crate::reader::placed_event::{PlacedEvent, TraceThread, with_repairs};
use crate::span::group_key::{GroupEvent, group_and_role};
use crate::span::groups::{Matched, match_events};
use crate::span::lane_events::ArgsPosition;
use crate::store::sorter::{Record, Sorted, Sorter};
use crate::summary::chunk_summary::{RecordedThread, thread_kind};
use crate::write::addition::Addition;
use crate::write::writer::Job;
use crate::{Error, Report};
use sa_format::Phase::{AsyncBegin, AsyncEnd, Begin, End};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// All events of a trace. They can be read repeatedly, in parallel and in bounded memory.
pub struct TraceEvents<'a> {
    trace: ReadyTrace<'a>,
    index: ThreadIndex,
    /// Counterparts of begins and ends that were matched.
    counterparts: Sorted<SpanCounterpart>,
    processes: Vec<TraceProcess<'a>>,
    devices: Devices,
    addition: Addition,
}

impl<'a> TraceEvents<'a> {
    pub(super) fn new(trace: &ReadyTrace<'a>) -> TraceEvents<'a> {
        let (job, report) = (trace.job, trace.report);
        let processes = &job.plan.processes;
        TraceEvents {
            index: ThreadIndex::new(job.plan, &job.extra_lanes.targets),
            counterparts: Sorted::default(),
            processes: trace_processes(processes, &report.processes),
            devices: Devices::new(processes, &report.processes),
            addition: Addition::default(),
            trace: *trace,
        }
    }

    /// Sets the tracks to add to the trace that is about to be written. They replace the ones that
    /// were set before. A split trace gets none.
    pub fn add(&mut self, addition: Addition) {
        self.addition = addition;
    }

    pub(super) fn into_addition(self) -> Addition {
        self.addition
    }

    /// Returns the report on damage, losses, clocks and windows. It does not contain what a merge
    /// does after everything is decided, such as the path of the trace.
    pub fn report(&self) -> &'a Report {
        self.trace.report
    }

    /// Returns the begin of the trace in ns since 1970 by the reference host's wall clock, or
    /// `None` if no recorder stored it.
    pub fn base_unix_ns(&self) -> Option<i64> {
        self.trace.base_unix_ns
    }

    /// Returns the processes in the order of the trace.
    pub fn processes(&self) -> &[TraceProcess<'a>] {
        &self.processes
    }

    /// Returns the threads. Threads of one process are next to each other.
    pub fn threads(&self) -> &[TraceThread] {
        &self.index.threads
    }

    /// Returns the devices among the processes.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Matches begins with ends, so that [`PlacedEvent::other_ns`] is known from then on. Reads all
    /// chunks that have any.
    ///
    /// They are matched like viewers do: an end belongs to the last begin on its thread, or with
    /// its id and category, that has its name and category and no end yet.
    ///
    /// # Errors
    /// Returns an error if there is no room for temporary files.
    pub fn match_spans(&mut self) -> Result<(), Error> {
        let counterparts = |folder: &Path| {
            let pool = self.trace.pool;
            pool.install(|| span_counterparts(&self.trace.job, &self.index, folder))
        };
        self.counterparts = try_folders(self.trace.folders, counterparts)?;
        Ok(())
    }

    /// Reads all events. `of_event` adds the events of a chunk to the value that `begin` returned
    /// for it; this happens on many threads. A chunk is about a megabyte of lines of one recording,
    /// in their order. `merge` receives the value of each chunk, one after the other and in order,
    /// so that its result does not depend on the number of threads.
    ///
    /// # Errors
    /// Returns the first error of `merge`.
    pub fn fold<T: Send>(
        &self,
        begin: impl Fn() -> T + Send + Sync,
        of_event: impl Fn(&mut T, &PlacedEvent<'_>) + Send + Sync,
        merge: impl FnMut(T) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        let chunks = self.trace.job.chunks;
        let progress = self.trace.job.progress;
        progress.expect_more(chunks.iter().map(Chunk::len).sum());
        let scan = |number: usize| {
            let mut found = begin();
            self.for_each_in_chunk(number, |event| of_event(&mut found, event));
            progress.add(chunks[number].len(), 0);
            found
        };
        let pool = self.trace.pool;
        pool.install(|| map_chunks(0..chunks.len(), BatchSize::Large, scan).try_for_each(merge))
    }

    /// Calls `found` with the events of a chunk.
    fn for_each_in_chunk(&self, number: usize, mut found: impl FnMut(&PlacedEvent<'_>)) {
        let job = &self.trace.job;
        let chunk = &job.chunks[number];
        let source = &job.sources[chunk.source];
        let shift_ns = job.plan.shifts_ns[source.recording];
        let mut moved = job.extra_lanes.chunk_moves(number, job.sources);
        let mut counterparts = ChunkRecords::new(&self.counterparts, number);
        // Last thread of each kind of threads, with its track.
        let mut recent = [None; 64];
        let mut track = |thread: (i64, i64)| {
            let recent = &mut recent[thread_kind(thread)];
            if recent.is_none_or(|(last, _)| last != thread) {
                *recent = Some((thread, self.index.track(source.recording, thread)));
            }
            recent.and_then(|(_, place)| place)
        };
        chunk.for_each_event(source.bytes, |_, relation, event| {
            // Advance both iterators even if the event is not shown.
            let shown = moved.next();
            let counterpart = counterparts.next();
            if relation == Relation::Outside || shown.form == Form::Omitted || is_left_out(event) {
                return;
            }
            let place = match shown.lane {
                Some(lane) => self.index.extra_lane(lane),
                None => track((event.pid, event.tid)),
            };
            let Some(place) = place else { return };
            let mut emit = |event: &Event<'_>| {
                let mut placed = PlacedEvent::new(event, place, shift_ns);
                placed.other_ns = counterpart.map(|counterpart| counterpart.other_ns.max(0));
                placed.is_cut = relation == Relation::Across;
                found(&placed);
            };
            shown.with(event, |event| match event.fields.is_mended() {
                true => with_repairs(event, emit),
                false => emit(event),
            });
        });
    }
}

/// A process, or a group of tracks that a process recorded, such as the streams of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceProcess<'a> {
    /// Report of the merge about it: name, ids, host, how it ended, its first and last time.
    pub report: &'a ProcessReport,
    /// Number of the process that recorded it: itself, except for a group of tracks.
    pub recorder: usize,
    /// Trace of another profiler that it comes from.
    pub profiler: Option<&'a str>,
    /// Labels in that trace, such as `NPU 3` or `GPU 0, pid 4711`.
    pub labels: Option<&'a str>,
    /// Boot of its host, if its header contains one: after a reboot, a host has other clocks.
    pub boot_id: Option<&'a str>,
    /// Run that it recorded, if its header contains one.
    pub run: Option<&'a str>,
    /// Number of the clock of its times; processes with the same number share a clock. `None` for a
    /// trace that is the only input and has no clock.
    pub clock: Option<usize>,
    /// Maximum error of its times against the clock of the reference host, in ns; `None` if it is
    /// unknown. Times of one host have no error between them.
    pub clock_uncertainty_ns: Option<u64>,
}

/// Returns all processes in the order of the trace.
pub(super) fn trace_processes<'a>(
    processes: &'a [Process],
    reports: &'a [ProcessReport],
) -> Vec<TraceProcess<'a>> {
    let keys = processes.iter().map(|process| &process.key);
    let numbers: BTreeMap<&ProcessKey, usize> = keys.zip(0..).collect();
    let process = |((process, report), number): ((&'a Process, &'a ProcessReport), usize)| {
        let (recorder, origin) = (process.key.recorder(), process.origin.as_ref());
        let boot_id = match recorder {
            ProcessKey::Recorded(_, boot_id, ..) => Some(boot_id.as_str()),
            _ => None,
        };
        TraceProcess {
            report,
            recorder: numbers.get(recorder).copied().unwrap_or(number),
            profiler: origin.map(|origin| origin.name.as_str()),
            labels: origin.and_then(|origin| origin.labels.as_deref()),
            boot_id: boot_id.filter(|boot_id| !boot_id.is_empty()),
            run: process.run.as_deref(),
            clock: process.clock.map(|clock| clock.number),
            clock_uncertainty_ns: process.clock.and_then(|clock| clock.uncertainty_ns),
        }
    };
    processes
        .iter()
        .zip(reports)
        .zip(0..)
        .map(process)
        .collect()
}

/// Returns the counterpart of each begin and end that has one.
pub(super) fn span_counterparts(
    job: &Job<'_>,
    index: &ThreadIndex,
    folder: &Path,
) -> io::Result<Sorted<SpanCounterpart>> {
    let mut begins_and_ends = Sorter::new(folder);
    let (sources, chunks) = (job.sources, job.chunks);
    let numbers = (0..chunks.len()).filter(|number| chunks[*number].has_begins_or_ends);
    let begin_or_end = |(recording, thread): RecordedThread, at: EventRef, event: &Event<'_>| {
        if !matches!(event.phase, Begin | End | AsyncBegin | AsyncEnd) {
            return None;
        }
        let track = index.track(recording, thread)?;
        let target = job.plan.targets[recording].get(&thread)?;
        let (group, role) = group_and_role(event, target, track.thread, false)?;
        let shift_ns = job.plan.shifts_ns[recording];
        Some(GroupEvent {
            group,
            at_ns: event.ts_ns.saturating_add(shift_ns),
            at,
            labels: Labels::new(event),
            role,
            data: ArgsPosition::default(),
        })
    };
    let scan = |number: usize| ChunkView { sources, chunks }.map_shown(number, begin_or_end);
    begins_and_ends.extend(map_chunks(numbers, BatchSize::Small, scan).flatten())?;
    let mut counterparts = Sorter::new(folder);
    match_events(&begins_and_ends.finish()?, |matched| {
        let Matched::Span(begin, Some(end)) = matched else {
            return Ok(());
        };
        for (event, other) in [(begin, end), (end, begin)] {
            let (at, other_ns) = (event.at, other.at_ns);
            counterparts.push(SpanCounterpart { at, other_ns })?;
        }
        Ok(())
    })?;
    counterparts.finish()
}

/// Time of the counterpart of a begin or an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpanCounterpart {
    pub(super) at: EventRef,
    pub(super) other_ns: i64,
}

impl EventRecord for SpanCounterpart {
    fn event(&self) -> EventRef {
        self.at
    }
}

impl Record for SpanCounterpart {}
