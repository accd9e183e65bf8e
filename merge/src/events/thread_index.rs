//! Threads as recordings name them → threads of the trace.

use super::trace_thread::TraceThread;
use crate::event::patch::Target;
use crate::identity::plan::Plan;
use std::collections::HashMap;

/// Where the events of a thread are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadRow {
    /// The number of the thread.
    pub(crate) thread: u32,
    /// 0 for its own row, else which of those beside it.
    pub(crate) row: u32,
    /// The scope of its flow ids.
    pub(crate) ordinal: u64,
}

/// Finds the thread of an event.
pub(super) struct ThreadIndex {
    pub(super) threads: Vec<TraceThread>,
    /// For each recording, by pid and tid in its lines.
    recorded: Vec<HashMap<(i64, i64), ThreadRow>>,
    /// The rows beside threads, by their number.
    beside: Vec<Option<ThreadRow>>,
}

impl ThreadIndex {
    /// The threads of a plan, and the rows beside them.
    pub(super) fn new(plan: &Plan, beside: &[Target]) -> ThreadIndex {
        let mut threads = Vec::new();
        let mut rows: HashMap<(u32, u32), (u32, u32)> = HashMap::new();
        for (number, process) in plan.identities.processes.iter().enumerate() {
            for (key, thread) in &process.threads {
                let nth = u32::try_from(threads.len()).unwrap_or(u32::MAX);
                let tids = [thread.output_tid].into_iter();
                for (tid, row) in tids.chain(thread.overflow.iter().copied()).zip(0..) {
                    rows.insert((process.output_pid, tid), (nth, row));
                }
                threads.push(TraceThread::of(number, process, *key, thread));
            }
        }
        let row = |target: &Target| {
            let found = rows.get(&(target.pid.number(), target.tid.number()));
            let (thread, row) = found.copied()?;
            let ordinal = target.ordinal;
            Some(ThreadRow {
                thread,
                row,
                ordinal,
            })
        };
        let of_recording = |targets: &HashMap<(i64, i64), Target>| {
            let targets = targets.iter();
            targets
                .filter_map(|(thread, target)| Some((*thread, row(target)?)))
                .collect()
        };
        ThreadIndex {
            recorded: plan.targets.iter().map(of_recording).collect(),
            beside: beside.iter().map(row).collect(),
            threads,
        }
    }

    /// Where the events of a thread are shown, if they are.
    pub(super) fn of(&self, recording: usize, thread: (i64, i64)) -> Option<ThreadRow> {
        self.recorded.get(recording)?.get(&thread).copied()
    }

    /// A row beside a thread, by its number.
    pub(super) fn beside(&self, number: u32) -> Option<ThreadRow> {
        self.beside.get(usize::try_from(number).ok()?).copied()?
    }
}
