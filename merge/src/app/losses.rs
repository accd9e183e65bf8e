//! Reports missing events of each process, with time and cause, from the loss records of all
//! recordings.

pub(crate) mod report;

use crate::app::losses::report::LossReport;
use crate::app::report::{ProcessReport, Report};
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::event::loss::{Loss, MOST, Row, changes_events};
use crate::event::patch::Id;
use crate::identity::plan::Plan;
use crate::pass::chunk::Chunk;
use crate::pass::parallel::ChunkView;
use crate::summary::chunk_summary::ChunkSummary;
use rayon::prelude::*;
use sa_format::Phase;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of loss records.
const LOSS_NAME: &[u8] = br#""name":"sa_loss""#;
/// A loss, and the number of events of its thread or process that are left in its time range.
struct TrackLoss<'a> {
    row: &'a Row,
    loss: &'a Loss,
    left: AtomicU64,
}

impl TrackLoss<'_> {
    fn overlaps(&self, chunk: &Chunk) -> bool {
        let times = chunk.recorded_range_ns();
        times.is_some_and(|(first_ns, last_ns)| {
            first_ns <= self.loss.last_ns && self.loss.first_ns <= last_ns
        })
    }
}

/// Adds the losses of each thread and process to the report. Runs after the processes were
/// reported, because it refers to them.
pub(crate) fn report_losses(
    ChunkView { sources, chunks }: ChunkView<'_>,
    summaries: &[ChunkSummary],
    plan: &Plan,
    report: &mut Report,
) {
    let missing: Vec<Vec<TrackLoss<'_>>> = summaries.iter().map(recording_losses).collect();
    if missing.iter().all(Vec::is_empty) {
        return;
    }
    chunks.par_iter().for_each(|chunk| {
        let source = &sources[chunk.source];
        // By process and thread; a loss of a whole process has no thread.
        let mut rows: HashMap<_, Vec<&TrackLoss<'_>>> = HashMap::new();
        let missing = missing[source.recording].iter();
        for missing in missing.filter(|missing| missing.overlaps(chunk)) {
            let ((pid, tid), is_of_thread, _) = missing.row;
            let row = (*pid, is_of_thread.then_some(*tid));
            rows.entry(row).or_default().push(missing);
        }
        if rows.is_empty() {
            return;
        }
        chunk.for_each_event(source.bytes, |_, lies, event| {
            if lies == Lies::Outside || event.is_metadata() || is_loss(event) {
                return;
            }
            for row in [(event.pid, Some(event.tid)), (event.pid, None)] {
                for TrackLoss { loss, left, .. } in rows.get(&row).into_iter().flatten() {
                    if (loss.first_ns..=loss.last_ns).contains(&event.ts_ns) {
                        left.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    });
    let pids = report.processes.iter().map(|of| of.output_pid.into());
    let by_pid: HashMap<Id, usize> = pids.zip(0..).collect();
    for (recording, missing) in missing.iter().enumerate() {
        for missing in missing {
            let target = plan.targets[recording].get(&missing.row.0);
            let number = target.and_then(|target| by_pid.get(&target.pid)).copied();
            let process = number.map(|number| &report.processes[number]);
            let loss = loss_report(missing, recording, &summaries[recording], plan, process);
            report.losses.list.push(LossReport { number, ..loss });
        }
    }
    let losses = &mut report.losses;
    let refused = summaries.iter().map(|summary| summary.losses.refused());
    losses.refused_processes = refused.fold(losses.refused_processes, u64::saturating_add);
    let list = &mut losses.list;
    list.sort_by_key(|loss| Reverse((loss.processes, loss.events)));
    list.truncate(MOST);
}

/// Returns true for a loss record. The name may not have been parsed.
fn is_loss(event: &Event<'_>) -> bool {
    event.phase == Phase::Instant && memchr::memmem::find(event.line, LOSS_NAME).is_some()
}

fn recording_losses(summary: &ChunkSummary) -> Vec<TrackLoss<'_>> {
    let all = summary.losses.iter();
    let lost = all.filter(|(_, loss)| loss.events > 0 || loss.processes > 0);
    let missing = lost.map(|(row, loss)| TrackLoss {
        row,
        loss,
        left: AtomicU64::new(0),
    });
    let mut missing: Vec<_> = missing.collect();
    // Processes that could not record come first, because their number of events is unknown.
    missing.sort_by_key(|TrackLoss { row, loss, .. }| {
        Reverse((loss.processes, !changes_events(&row.2), loss.events))
    });
    missing.truncate(MOST);
    missing
}

fn loss_report(
    missing: &TrackLoss<'_>,
    recording: usize,
    summary: &ChunkSummary,
    plan: &Plan,
    process: Option<&ProcessReport>,
) -> LossReport {
    let (thread, is_of_thread, cause) = missing.row;
    let name = || {
        let name = summary.thread_names.get(thread);
        name.map_or_else(|| format!("thread {}", thread.1), Clone::clone)
    };
    let at = |ns: i64| ns.saturating_add(plan.shifts_ns[recording]);
    let (events, is_changed) = (missing.loss.events, changes_events(cause));
    LossReport {
        process: process.and_then(|process| process.name.clone()),
        number: None,
        pid: process.map_or(thread.0, |process| process.pid),
        thread: is_of_thread.then(name),
        cause: cause.clone(),
        events: if is_changed { 0 } else { events },
        changed: if is_changed { events } else { 0 },
        bytes: missing.loss.bytes,
        events_left: missing.left.load(Ordering::Relaxed),
        processes: missing.loss.processes,
        error: missing.loss.error,
        from_ns: Some(at(missing.loss.first_ns)),
        to_ns: Some(at(missing.loss.last_ns)),
    }
}
