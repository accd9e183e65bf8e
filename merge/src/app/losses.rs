//! Reports missing events of each process, with time and cause, from the loss records of all
//! recordings.

pub(crate) mod report;

use crate::app::losses::report::LossReport;
use crate::app::report::{ProcessReport, Report};
use crate::event::edges::Relation;
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
    key: &'a Row,
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
    let losses_by_recording: Vec<Vec<TrackLoss<'_>>> =
        summaries.iter().map(recording_losses).collect();
    if losses_by_recording.iter().all(Vec::is_empty) {
        return;
    }
    chunks.par_iter().for_each(|chunk| {
        let source = &sources[chunk.source];
        // By process and thread; a loss of a whole process has no thread.
        let mut by_track: HashMap<_, Vec<&TrackLoss<'_>>> = HashMap::new();
        let losses = losses_by_recording[source.recording].iter();
        for track_loss in losses.filter(|track_loss| track_loss.overlaps(chunk)) {
            let ((pid, tid), is_of_thread, _) = track_loss.key;
            let track = (*pid, is_of_thread.then_some(*tid));
            by_track.entry(track).or_default().push(track_loss);
        }
        if by_track.is_empty() {
            return;
        }
        chunk.for_each_event(source.bytes, |_, relation, event| {
            if relation == Relation::Outside || event.is_metadata() || is_loss(event) {
                return;
            }
            for track in [(event.pid, Some(event.tid)), (event.pid, None)] {
                for TrackLoss { loss, left, .. } in by_track.get(&track).into_iter().flatten() {
                    if (loss.first_ns..=loss.last_ns).contains(&event.ts_ns) {
                        left.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    });
    let pids = report
        .processes
        .iter()
        .map(|process| process.output_pid.into());
    let by_pid: HashMap<Id, usize> = pids.zip(0..).collect();
    for (recording, losses) in losses_by_recording.iter().enumerate() {
        for track_loss in losses {
            let target = plan.targets[recording].get(&track_loss.key.0);
            let number = target.and_then(|target| by_pid.get(&target.pid)).copied();
            let process = number.map(|number| &report.processes[number]);
            let loss = loss_report(track_loss, recording, &summaries[recording], plan, process);
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
    let mut losses: Vec<_> = lost
        .map(|(key, loss)| TrackLoss {
            key,
            loss,
            left: AtomicU64::new(0),
        })
        .collect();
    // Processes that could not record come first, because their number of events is unknown.
    losses.sort_by_key(|TrackLoss { key, loss, .. }| {
        Reverse((loss.processes, !changes_events(&key.2), loss.events))
    });
    losses.truncate(MOST);
    losses
}

fn loss_report(
    track_loss: &TrackLoss<'_>,
    recording: usize,
    summary: &ChunkSummary,
    plan: &Plan,
    process: Option<&ProcessReport>,
) -> LossReport {
    let (thread, is_of_thread, cause) = track_loss.key;
    let name = || {
        let name = summary.thread_names.get(thread);
        name.map_or_else(|| format!("thread {}", thread.1), Clone::clone)
    };
    let at = |ns: i64| ns.saturating_add(plan.shifts_ns[recording]);
    let (events, is_changed) = (track_loss.loss.events, changes_events(cause));
    LossReport {
        process: process.and_then(|process| process.name.clone()),
        number: None,
        pid: process.map_or(thread.0, |process| process.pid),
        thread: is_of_thread.then(name),
        cause: cause.clone(),
        events: if is_changed { 0 } else { events },
        changed: if is_changed { events } else { 0 },
        bytes: track_loss.loss.bytes,
        events_left: track_loss.left.load(Ordering::Relaxed),
        processes: track_loss.loss.processes,
        error: track_loss.loss.error,
        from_ns: Some(at(track_loss.loss.first_ns)),
        to_ns: Some(at(track_loss.loss.last_ns)),
    }
}
