//! Reports the processes and clocks of the trace.

use super::{ClocksReport, ProcessReport, Report};
use crate::clock::clocks::Clocks;
use crate::event::patch::Id;
use crate::identity::plan::Plan;
use crate::identity::process::{Process, RecordingEnd};
use crate::identity::viewer_metadata::{metadata_lines, shown_names};
use crate::summary::chunk_summary::ChunkSummary;

/// Reports the processes and clocks of the trace.
pub(crate) fn report_processes(plan: &Plan, clocks: &Clocks, report: &mut Report) {
    let from_base =
        |ns: i64| (ns.unsigned_abs() <= u64::MAX / 4).then(|| ns.saturating_sub(plan.base_ns));
    let names = shown_names(&plan.processes);
    let end = |process: &Process| {
        let end = process.end.filter(|_| process.tracks.is_none());
        end.map(|(_, end)| end)
    };
    let processes = plan.processes.iter().zip(names);
    let processes = processes.map(|(process, name)| ProcessReport {
        name,
        pid: process.pid,
        output_pid: process.output_pid,
        host: process.host.clone(),
        main: process.main && process.tracks.is_none(),
        tracks: process.tracks.is_some(),
        end: end(process).and_then(RecordingEnd::report_name),
        exit: process.exit.clone().filter(|_| process.tracks.is_none()),
        was_running: end(process) == Some(RecordingEnd::Running),
        open_spans: end(process).map_or(0, RecordingEnd::open_spans),
        aside_for: process
            .duplicate_of
            .as_ref()
            .map(|other| other.trace.clone()),
        threads: process.used_threads().count(),
        seen_by_preload: false,
        not_visible: Vec::new(),
        events: process.activity.events,
        first_ns: from_base(process.bounded_times_ns().0),
        last_ns: from_base(process.bounded_times_ns().1),
    });
    report.processes = processes.collect();
    report.clocks = ClocksReport {
        base_ns: plan.base_ns,
        placements: clocks.placements(),
        failed: clocks.flow_error.clone(),
    };
    report.events_added = metadata_lines(&plan.processes).len() as u64;
}

/// Reports the processes that the preload library sees, and the parts of them that it cannot see.
/// The processes must be in the report already.
pub(crate) fn report_preload(summaries: &[ChunkSummary], plan: &Plan, report: &mut Report) {
    for (recording, summary) in summaries.iter().enumerate() {
        for (pid, visibility) in &summary.visibility {
            let target = plan.targets[recording].get(&(*pid, *pid));
            let is_target =
                |output_pid: u32| target.is_some_and(|to| to.pid == Id::from(output_pid));
            let mut processes = report.processes.iter_mut();
            if let Some(process) = processes.find(|process| is_target(process.output_pid)) {
                process.seen_by_preload = true;
                process.not_visible = visibility.sentences();
            }
        }
    }
}
