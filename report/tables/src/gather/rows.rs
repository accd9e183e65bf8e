//! The rows of the trace's threads, numbered one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use trace_merge::events::TraceThread;

/// A row: a thread itself, or one beside it for spans that overlap others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadRow {
    /// The thread by its number in the trace.
    pub(crate) thread: usize,
    /// The id that the trace shows.
    pub(crate) tid: u32,
    /// Which of those beside the thread it is; 0 for the thread itself.
    pub(crate) beside: usize,
}

impl ThreadRow {
    /// The name that the trace gives it.
    pub(crate) fn name(&self, thread: &TraceThread) -> Option<String> {
        match self.beside {
            0 => thread.name.clone(),
            number => {
                let first = thread.name.clone();
                let first = first.unwrap_or_else(|| thread.tid.to_string());
                Some(format!("{first} (overlapping {number})"))
            }
        }
    }
}

/// All rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The first row of each thread.
    first: Vec<u32>,
    /// Those of each process; its threads stand together.
    of_process: BTreeMap<usize, Range<usize>>,
    rows: Vec<ThreadRow>,
}

impl Rows {
    pub(crate) fn of(threads: &[TraceThread]) -> Rows {
        let mut rows = Rows::default();
        for (number, thread) in threads.iter().enumerate() {
            let first = u32::try_from(rows.rows.len()).unwrap_or(u32::MAX);
            rows.first.push(first);
            let tids = [thread.tid].into_iter().chain(thread.rows.iter().copied());
            rows.rows
                .extend(tids.zip(0..).map(|(tid, beside)| ThreadRow {
                    thread: number,
                    tid,
                    beside,
                }));
            let end = rows.rows.len();
            let of_process = rows.of_process.entry(thread.process);
            of_process.or_insert(first as usize..end).end = end;
        }
        rows
    }

    /// The number of a row of a thread.
    pub(crate) fn number(&self, thread: usize, row: usize) -> u32 {
        self.first[thread] + u32::try_from(row).unwrap_or(0)
    }

    /// The rows of a process, by their numbers.
    pub(crate) fn of_process(&self, process: usize) -> Range<usize> {
        self.of_process.get(&process).cloned().unwrap_or_default()
    }

    /// A row by its number.
    pub(crate) fn row(&self, number: usize) -> &ThreadRow {
        &self.rows[number]
    }
}
