//! What is missing of whose events, when and why: the loss records of all recordings → sentences.

mod report;

pub use report::LossReport;

use crate::index::Index;
use crate::line::Event;
use crate::patch::Id;
use crate::plan::Plan;
use crate::report::{ProcessReport, Report};
use crate::source::{Chunk, Source};
use crate::window::Lies;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most rows of which a report says what they lost; the sum of all stays exact.
const MOST: usize = 256;

/// How recorders name their loss records.
const LOSS_NAME: &[u8] = br#""name":"sa_loss""#;
/// No recorder's cause is longer.
const CAUSE_CHARS: usize = 64;
/// The cause of what is missing and no recorder's record explains.
pub(crate) const GAP: &str = "gap";

/// The row that a loss record stands on, whether it is of that thread alone, and why.
type Row = ((i64, i64), bool, String);

/// The losses of a stretch of lines, by row and cause.
#[derive(Clone, Default)]
pub(crate) struct Losses(BTreeMap<Row, Loss>);

/// What was lost of a row for one cause; times as the lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) events: u64,
    pub(crate) processes: u64,
    pub(crate) error: u64,
    /// Bytes of their lines, of [`GAP`] alone.
    pub(crate) bytes: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

impl Losses {
    /// Adds a loss of the thread or process that its record stands on.
    pub(crate) fn add(&mut self, event: &Event<'_>, is_of_thread: bool, cause: &str, loss: Loss) {
        let cause = cause.chars().take(CAUSE_CHARS).collect();
        let row = ((event.pid, event.tid), is_of_thread, cause);
        self.join(row, loss);
    }

    fn join(&mut self, row: Row, loss: Loss) {
        if self.0.len() == 16 * MOST && !self.0.contains_key(&row) {
            return; // no recorder has so many rows
        }
        let sum = self.0.entry(row).or_insert(Loss {
            events: 0,
            processes: 0,
            bytes: 0,
            ..loss
        });
        sum.events = sum.events.saturating_add(loss.events);
        sum.processes = sum.processes.saturating_add(loss.processes);
        sum.bytes = sum.bytes.saturating_add(loss.bytes);
        sum.first_ns = sum.first_ns.min(loss.first_ns);
        sum.last_ns = sum.last_ns.max(loss.last_ns);
    }

    /// Adds what comes after `self`.
    pub(crate) fn append(&mut self, later: Losses) {
        for (row, loss) in later.0 {
            self.join(row, loss);
        }
    }

    /// Processes that could not record at all.
    fn refused(&self) -> u64 {
        let refused = self.0.values().map(|loss| loss.processes);
        refused.fold(0, u64::saturating_add)
    }

    /// Moves all times.
    pub(crate) fn warp(&mut self, at: impl Fn(i64) -> i64) {
        for loss in self.0.values_mut() {
            (loss.first_ns, loss.last_ns) = (at(loss.first_ns), at(loss.last_ns));
        }
    }
}

/// A loss, and how many events of its row are there in its time.
struct Missing<'a> {
    row: &'a Row,
    loss: &'a Loss,
    left: AtomicU64,
}

impl Missing<'_> {
    fn count(&self, event: &Event<'_>) {
        let range = self.loss.first_ns..=self.loss.last_ns;
        if range.contains(&event.ts_ns) {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn meets(&self, chunk: &Chunk) -> bool {
        let times = chunk.times_ns();
        times.is_some_and(|(first_ns, last_ns)| {
            first_ns <= self.loss.last_ns && self.loss.first_ns <= last_ns
        })
    }
}

/// The losses that a chunk may have events beside, by process and thread; those of a whole process have no thread.
struct Rows<'m>(HashMap<(i64, Option<i64>), Vec<&'m Missing<'m>>>);

impl<'m> Rows<'m> {
    fn of(missing: &'m [Missing<'m>], chunk: &Chunk) -> Rows<'m> {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for missing in missing.iter().filter(|missing| missing.meets(chunk)) {
            let ((pid, tid), is_of_thread, _) = missing.row;
            let row = (*pid, is_of_thread.then_some(*tid));
            rows.entry(row).or_default().push(missing);
        }
        Rows(rows)
    }

    /// Counts an event for all losses of its row.
    fn count(&self, event: &Event<'_>) {
        for row in [(event.pid, Some(event.tid)), (event.pid, None)] {
            let missing = self.0.get(&row).into_iter().flatten();
            missing.for_each(|missing| missing.count(event));
        }
    }
}

/// Says of each row what is missing: once the plan is told, which names the processes.
pub(crate) fn tell_losses(
    (sources, chunks): (&[Source<'_>], &[Chunk]),
    indexes: &[Index],
    plan: &Plan,
    report: &mut Report,
) {
    let missing: Vec<Vec<Missing<'_>>> = indexes.iter().map(of_recording).collect();
    if missing.iter().all(Vec::is_empty) {
        return;
    }
    chunks.par_iter().for_each(|chunk| {
        let source = &sources[chunk.source];
        let rows = Rows::of(&missing[source.recording], chunk);
        if rows.0.is_empty() {
            return;
        }
        chunk.each(source.bytes, |_, lies, event| {
            if lies != Lies::Outside && !event.is_metadata() && !is_loss(event) {
                rows.count(event);
            }
        });
    });
    let processes = report.processes.iter().enumerate();
    let by_pid: HashMap<Id, usize> = processes
        .map(|(nth, process)| (process.output_pid.into(), nth))
        .collect();
    for (recording, missing) in missing.iter().enumerate() {
        for missing in missing {
            let target = plan.targets[recording].get(&missing.row.0);
            let process = target.and_then(|target| by_pid.get(&target.pid));
            let process = process.map(|nth| &report.processes[*nth]);
            let told = said(missing, (recording, &indexes[recording]), plan, process);
            report.losses.push(told);
        }
    }
    let refused = indexes.iter().map(|index| index.losses.refused());
    report.refused_processes += refused.sum::<u64>();
    report
        .losses
        .sort_by_key(|loss| Reverse((loss.processes, loss.events)));
    report.losses.truncate(MOST);
}

/// Whether it is a loss record; its name may not have been looked for.
fn is_loss(event: &Event<'_>) -> bool {
    event.phase == b'i' && memchr::memmem::find(event.line, LOSS_NAME).is_some()
}

fn of_recording(index: &Index) -> Vec<Missing<'_>> {
    let all = index.losses.0.iter();
    let lost = all.filter(|(_, loss)| loss.events > 0 || loss.processes > 0);
    let missing = lost.map(|(row, loss)| Missing {
        row,
        loss,
        left: AtomicU64::new(0),
    });
    let mut missing: Vec<_> = missing.collect();
    // Nobody knows how many events a process had that could not record, and so it is told before all others.
    missing.sort_by_key(|missing| Reverse((missing.loss.processes, missing.loss.events)));
    missing.truncate(MOST);
    missing
}

fn said(
    missing: &Missing<'_>,
    (recording, index): (usize, &Index),
    plan: &Plan,
    process: Option<&ProcessReport>,
) -> LossReport {
    let (thread, is_of_thread, cause) = missing.row;
    let name = || {
        let name = index.thread_names.get(thread);
        name.map_or_else(|| format!("thread {}", thread.1), Clone::clone)
    };
    let at = |ns: i64| ns.saturating_add(plan.shifts_ns[recording]);
    LossReport {
        process: process.and_then(|process| process.name.clone()),
        pid: process.map_or(thread.0, |process| process.pid),
        thread: is_of_thread.then(name),
        cause: cause.clone(),
        events: missing.loss.events,
        bytes: missing.loss.bytes,
        events_left: missing.left.load(Ordering::Relaxed),
        processes: missing.loss.processes,
        error: missing.loss.error,
        from_ns: Some(at(missing.loss.first_ns)),
        to_ns: Some(at(missing.loss.last_ns)),
    }
}
