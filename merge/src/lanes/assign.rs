//! The spans of threads that overlap, spread over rows, one thread after the other.

use crate::event::patch::Target;
use crate::identity::process::{Process, Thread};
use crate::lanes::candidates::LaneCandidate;
use crate::lanes::outcasts::OutcastRange;
use crate::lanes::row_move::{Form, Move};
use crate::lanes::rows::LaneRows;
use crate::pass::chunk::EventRef;
use crate::span::lane_event::{LaneEvent, LaneEventKind};
use crate::store::sorter::{Reader, Sorted, Sorter};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;

/// Ends of flows that wait for the next span; the others of a thread stay where they are.
const WAITING: usize = 1 << 16;

/// Spreads the spans of threads over as many rows as they need, one thread after the other.
pub(crate) struct LaneAssignment<'a> {
    pub(crate) moves: Sorter<'a, Move>,
    /// The rows that were added, with the thread they are beside.
    pub(crate) added: Vec<u32>,
    /// Spans that move, and those that fit on no row.
    pub(crate) spans: u64,
    pub(crate) left: u64,
    current: u32,
    rows: LaneRows,
    /// How many rows there were before this thread's.
    before: usize,
    waiting: Vec<EventRef>,
    /// The spans that leave their thread's own row: the ranges after the next one, and the next one.
    outcasts: Reader<'a, OutcastRange>,
    next_outcasts: Option<OutcastRange>,
    /// The greatest end of the ranges so far.
    outcasts_end: u64,
    /// The number of the next span.
    next_span: u64,
}

impl<'a> LaneAssignment<'a> {
    pub(crate) fn new(
        folder: &'a Path,
        outcasts: &'a Sorted<OutcastRange>,
    ) -> io::Result<LaneAssignment<'a>> {
        let mut outcasts = outcasts.reader();
        let next_outcasts = outcasts.next()?;
        Ok(LaneAssignment {
            moves: Sorter::new(folder),
            added: Vec::new(),
            spans: 0,
            left: 0,
            current: 0,
            rows: LaneRows::default(),
            before: 0,
            waiting: Vec::new(),
            outcasts,
            next_outcasts,
            outcasts_end: 0,
            next_span: 0,
        })
    }

    pub(crate) fn take(&mut self, event: LaneEvent) -> io::Result<()> {
        if event.row != self.current {
            (self.current, self.before) = (event.row, self.added.len());
            self.rows = LaneRows::default();
            self.waiting.clear();
        }
        match event.kind {
            LaneEventKind::Complete | LaneEventKind::Begin => self.place(&event),
            LaneEventKind::Next if self.waiting.len() < WAITING => {
                self.waiting.push(event.at);
                Ok(())
            }
            LaneEventKind::Next => Ok(()),
            LaneEventKind::Point => {
                let row = self.rows.at(event.start);
                self.put(event.at, row, Form::Recorded)
            }
        }
    }

    fn place(&mut self, event: &LaneEvent) -> io::Result<()> {
        let is_outcast = self.is_outcast()?;
        let row = self.rows.place((event.start, event.end), is_outcast);
        self.left += u64::from(row.is_none());
        let row = row.unwrap_or(0);
        self.spans += u64::from(row > 0);
        while self.before + row > self.added.len() {
            self.added.push(self.current);
        }
        let is_complete = event.kind == LaneEventKind::Complete;
        let (begin_form, end_form) = match event.end_at.is_some() && is_complete {
            true => (Form::Whole, Form::Omitted),
            false => (Form::Recorded, Form::Recorded),
        };
        self.put(event.at, row, begin_form)?;
        if let Some(end) = event.end_at {
            self.put(end, row, end_form)?;
        }
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .try_for_each(|at| self.put(at, row, Form::Recorded))
    }

    /// Returns true if the next span leaves its thread's own row.
    fn is_outcast(&mut self) -> io::Result<bool> {
        let number = self.next_span;
        self.next_span += 1;
        while let Some(range) = self.next_outcasts.filter(|range| range.first <= number) {
            self.outcasts_end = self.outcasts_end.max(range.end);
            self.next_outcasts = self.outcasts.next()?;
        }
        Ok(number < self.outcasts_end)
    }

    fn put(&mut self, at: EventRef, row: usize, form: Form) -> io::Result<()> {
        if row == 0 && form == Form::Recorded {
            return Ok(());
        }
        let added = |row: usize| u32::try_from(self.before + row).map_err(io::Error::other);
        let row = row.checked_sub(1).map(added).transpose()?;
        self.moves.push(Move::new(at, row, form))
    }
}

/// Gives rows that were added beside some threads ids, which the processes then know: the lowest numbers that are nobody's in their process.
pub(crate) fn targets(
    added: &[u32],
    suspects: &[LaneCandidate],
    processes: &mut [Process],
) -> Vec<Target> {
    let beside = |row: &u32| suspects[*row as usize].target.clone();
    let mut targets: Vec<Target> = added.iter().map(beside).collect();
    let mut of_process: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, target) in targets.iter().enumerate() {
        of_process
            .entry(target.pid.number())
            .or_default()
            .push(number);
    }
    for process in processes {
        let Some(rows) = of_process.get(&process.output_pid) else {
            continue;
        };
        let free = free_ids(process, rows.len());
        let mut threads = by_id(process);
        for (row, free) in rows.iter().zip(free) {
            let tid = &mut targets[*row].tid;
            if let Some(thread) = threads.get_mut(&tid.number()) {
                thread.overflow.push(free);
                *tid = free.into();
            }
        }
    }
    targets
}

/// A row is looked up in them, and there may be many of both.
fn by_id(process: &mut Process) -> HashMap<u32, &mut Thread> {
    let threads = process.threads.values_mut();
    threads
        .map(|thread| (thread.output_tid, &mut **thread))
        .collect()
}

fn free_ids(process: &Process, count: usize) -> Vec<u32> {
    let tids = process.threads.values().map(|thread| thread.output_tid);
    let taken: BTreeSet<u32> = tids.chain([process.output_pid]).collect();
    let is_free = |tid: &u32| !taken.contains(tid);
    (1..=u32::MAX).filter(is_free).take(count).collect()
}
