//! Lanes of the trace's threads, with consecutive numbers.

use std::collections::BTreeMap;
use std::ops::Range;
use trace_merge::events::TraceThread;

/// A lane of a thread: the thread itself, or an additional lane for spans that overlap others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLane {
    /// Number of the thread in the trace.
    pub(crate) thread: usize,
    /// Thread id in the trace.
    pub(crate) tid: u32,
    /// Number of the additional lane, or 0 for the thread itself.
    pub(crate) overlapping: usize,
}

impl ThreadLane {
    /// Returns the name of the lane in the trace.
    pub(crate) fn name(&self, thread: &TraceThread) -> Option<String> {
        match self.overlapping {
            0 => thread.name.clone(),
            number => {
                let name = thread.name.clone();
                let name = name.unwrap_or_else(|| thread.tid.to_string());
                Some(format!("{name} (overlapping {number})"))
            }
        }
    }
}

/// Lanes of all threads.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Number of the first lane of each thread.
    first: Vec<u32>,
    /// Numbers of the lanes of each process. They are consecutive.
    by_process: BTreeMap<usize, Range<usize>>,
    lanes: Vec<ThreadLane>,
}

impl Lanes {
    pub(crate) fn new(threads: &[TraceThread]) -> Lanes {
        let mut lanes = Lanes::default();
        for (number, thread) in threads.iter().enumerate() {
            let first = u32::try_from(lanes.lanes.len()).unwrap_or(u32::MAX);
            lanes.first.push(first);
            let tids = [thread.tid]
                .into_iter()
                .chain(thread.overlap_tracks.iter().copied());
            lanes
                .lanes
                .extend(tids.zip(0..).map(|(tid, overlapping)| ThreadLane {
                    thread: number,
                    tid,
                    overlapping,
                }));
            let end = lanes.lanes.len();
            let numbers = lanes.by_process.entry(thread.process);
            numbers.or_insert(first as usize..end).end = end;
        }
        lanes
    }

    /// Returns the number, among all lanes of the trace, of a thread's lane. Lane 0 is the thread's
    /// own; the others show spans that overlap.
    pub(crate) fn number(&self, thread: usize, lane: usize) -> u32 {
        self.first[thread] + u32::try_from(lane).unwrap_or(0)
    }

    /// Returns the range of lane numbers of a process. It is empty if the process has no lanes.
    pub(crate) fn in_process(&self, process: usize) -> Range<usize> {
        self.by_process.get(&process).cloned().unwrap_or_default()
    }

    /// Returns the lane with this number.
    pub(crate) fn lane(&self, number: usize) -> &ThreadLane {
        &self.lanes[number]
    }
}
