//! The spans of threads that overlap, spread over rows, one thread after the other.

use crate::event::patch::Target;
use crate::identity::{Process, Thread};
use crate::lanes::candidates::Suspect;
use crate::lanes::moves::Move;
use crate::lanes::rows::Rows;
use crate::span::lane_events::{At, Kind, Mark};
use crate::store::sorter::Sorter;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;

/// Ends of flows that wait for the next span; the others of a thread stay where they are.
const WAITING: usize = 1 << 16;

/// Spreads the spans of threads over as many rows as they need, one thread after the other.
pub(crate) struct Spread<'a> {
    pub(crate) moves: Sorter<'a, Move>,
    /// The rows that were added, with the thread they are beside.
    pub(crate) added: Vec<u32>,
    /// Spans that move, and those that fit on no row.
    pub(crate) spans: u64,
    pub(crate) left: u64,
    current: u32,
    rows: Rows,
    /// How many rows there were before this thread's.
    before: usize,
    waiting: Vec<At>,
}

impl<'a> Spread<'a> {
    pub(crate) fn new(folder: &'a Path) -> Spread<'a> {
        Spread {
            moves: Sorter::new(folder),
            added: Vec::new(),
            spans: 0,
            left: 0,
            current: 0,
            rows: Rows::default(),
            before: 0,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, mark: Mark) -> io::Result<()> {
        if mark.row != self.current {
            (self.current, self.before) = (mark.row, self.added.len());
            self.rows = Rows::default();
            self.waiting.clear();
        }
        match mark.kind {
            Kind::Complete | Kind::Begin => self.place(&mark),
            Kind::Next if self.waiting.len() < WAITING => {
                self.waiting.push(mark.at);
                Ok(())
            }
            Kind::Next | Kind::End => Ok(()),
            Kind::Point => {
                let row = self.rows.at(mark.start);
                self.put(mark.at, row)
            }
        }
    }

    fn place(&mut self, mark: &Mark) -> io::Result<()> {
        let row = self.rows.place((mark.start, mark.end));
        self.left += u64::from(row.is_none());
        let row = row.unwrap_or(0);
        self.spans += u64::from(row > 0);
        while self.before + row > self.added.len() {
            self.added.push(self.current);
        }
        self.put(mark.at, row)?;
        if let Some(end) = mark.end_at {
            self.put(end, row)?;
        }
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().try_for_each(|at| self.put(at, row))
    }

    fn put(&mut self, at: At, row: usize) -> io::Result<()> {
        if row == 0 {
            return Ok(());
        }
        let row = u32::try_from(self.before + row - 1).map_err(io::Error::other)?;
        self.moves.push(Move { at, row })
    }
}

/// Gives rows that were added beside some threads ids, which the processes then know: the lowest numbers that are nobody's in their process.
pub(crate) fn targets(
    added: &[u32],
    suspects: &[Suspect],
    processes: &mut [Process],
) -> Vec<Target> {
    let beside = |row: &u32| suspects[*row as usize].target.clone();
    let mut targets: Vec<Target> = added.iter().map(beside).collect();
    let mut of_process: HashMap<Option<u32>, Vec<usize>> = HashMap::new();
    for (number, target) in targets.iter().enumerate() {
        of_process.entry(id(&target.pid)).or_default().push(number);
    }
    for process in processes {
        let Some(rows) = of_process.get(&Some(process.output_pid)) else {
            continue;
        };
        let free = free_ids(process, rows.len());
        let mut threads = by_id(process);
        for (row, free) in rows.iter().zip(free) {
            let tid = &mut targets[*row].tid;
            if let Some(thread) = id(tid).and_then(|tid| threads.get_mut(&tid)) {
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

fn id(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn free_ids(process: &Process, count: usize) -> Vec<u32> {
    let tids = process.threads.values().map(|thread| thread.output_tid);
    let taken: BTreeSet<u32> = tids.chain([process.output_pid]).collect();
    let is_free = |tid: &u32| !taken.contains(tid);
    (1..=u32::MAX).filter(is_free).take(count).collect()
}
